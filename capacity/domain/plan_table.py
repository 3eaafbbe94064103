"""A plan as a table for people: decisions with their why, actions, problems."""

from __future__ import annotations

from collections.abc import Sequence

from capacity.domain.reasons import PROBLEMS, REASONS
from capacity.domain.snapshot.document import instant
from capacity.domain.types import Action, Decision, Plan


def table(plan: Plan) -> str:
    """The text, without a line end after the last line."""
    blocks = [
        f"Plan at {instant(plan.at)}: {_counted(len(plan.decisions), 'model')}, {_counted(len(plan.actions), 'action')}, "
        f"{_counted(len(plan.problems), 'problem')}"
    ]
    if plan.decisions:
        blocks.append(columns(_DECISION_HEADS, [_decision(decision) for decision in plan.decisions]))
    if plan.actions:
        blocks.append(columns(("ACTION", "WHAT", "WHERE", "BECAUSE"), [_action(action) for action in plan.actions]))
    if plan.problems:
        rows = [(PROBLEMS[problem.code].title, problem.subject, problem.detail) for problem in plan.problems]
        blocks.append(columns(("PROBLEM", "OF", "DETAIL"), rows))
    return "\n\n".join(blocks)


_DECISION_HEADS = ("MODEL", "DOES", "DEMAND", "READY", "STARTING", "ADDS ABOVE", "REMOVES BELOW", "WHY")


def _decision(decision: Decision) -> tuple[str, ...]:
    signs = {"add": f"add {decision.count}", "remove": f"remove {decision.count}", "hold": "hold"}
    return (
        decision.model,
        signs[decision.outcome],
        _demand(decision),
        _number(decision.capacity_ready),
        _number(decision.capacity_starting),
        _number(decision.adds_above),
        _number(decision.removes_below),
        f"{REASONS[decision.reason].title}. {decision.why}",
    )


def _demand(decision: Decision) -> str:
    """One number where it is known, else from the known part to what it may be at most."""
    if decision.demand_high == decision.demand_low:
        return str(decision.demand_low)
    return f"{decision.demand_low}–{'?' if decision.demand_high is None else decision.demand_high}"


def _number(value: int | None) -> str:
    return "–" if value is None else str(value)


def _action(action: Action) -> tuple[str, ...]:
    what = f"{action.model} / {action.profile}" if action.replica is None else f"{action.replica} of {action.model}"
    title = REASONS[action.reason].title
    because = title if action.returned_for is None else f"{title}, for {action.returned_for}"
    return (f"{action.op} (advice)" if action.advice else action.op, what, ", ".join(action.nodes) or "–", because)


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Left-aligned columns as wide as their widest cell; the last one runs on. Control characters are shown escaped."""
    cells = [heads, *([_plain(cell) for cell in row] for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(heads) - 1)]
    lines = ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]) for row in cells]
    return "\n".join(line.rstrip() for line in lines)


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
