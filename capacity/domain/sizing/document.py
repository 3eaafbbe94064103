"""The answer as `llmgw.target/1`, and as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from capacity.domain.plan_table import columns
from capacity.domain.sizing.cost import Cost, money
from capacity.domain.sizing.question import UNITS
from capacity.domain.sizing.types import Answer, MissingLimit, MissingUnits, PlanRow
from capacity.domain.sizing.words import amount, hold_sentence, options_of, plain, sentence, stopped, wanting

FORMAT: Final = "llmgw.target/1"
Inputs = Mapping[str, Any]


def target_document(
    answer: Answer, cost: Cost | None = None, cost_note: str = "", inputs: Inputs | None = None
) -> dict[str, Any]:
    """Every key is always there; what is not known is null."""
    question = answer.question
    return {
        "format": FORMAT,
        "model": answer.model,
        "asked": {key: plain(value) for key, value in question.given.items()},
        "options": options_of(question),
        "demand": {"unit": question.unit, "asked": plain(question.amount), "with_headroom": plain(question.wanted)},
        "verdict": answer.verdict,
        "sentence": sentence(answer),
        "served": plain(answer.served),
        "share": round(float(answer.share), 6),
        "plan": [_row(row) for row in answer.rows],
        "binding": [{"kind": stop.kind, **stop.facts} for stop in answer.binding],
        "missing": [_missing(row) for row in answer.missing],
        "raise_max_to": answer.raise_max_to,
        "quota_path": [_path(row) for row in answer.path],
        "holds_until": answer.holds_until,
        "even_served": None if answer.even_served is None else plain(answer.even_served),
        "tight": None if answer.tight is None else [{"profile": row.profile, "add": row.add} for row in answer.tight],
        "alternatives": [_alternative(row) for row in answer.alternatives],
        "cost": None if cost is None else _cost(cost),
        "inputs": {"at": answer.at, **(inputs or {})},
        "notes": [*answer.notes, *([cost_note] if cost_note else [])],
    }


def _row(row: PlanRow) -> dict[str, Any]:
    return {
        "profile": row.profile,
        "resource": row.resource,
        "have": row.have,
        "add": row.add,
        "units": row.units,
        "nodes": [list(nodes) for nodes in row.nodes] if row.hosts > 1 else [node for nodes in row.nodes for node in nodes],
        "measured": row.measured,
    }


def _missing(row: MissingUnits | MissingLimit) -> dict[str, Any]:
    if isinstance(row, MissingLimit):
        return {"scope": row.scope, "target": row.target, "limit": row.limit}
    return {"resource": row.resource, "units": row.units, "on_one_node": row.on_one_node}


def _path(row: Any) -> dict[str, Any]:
    return {key: getattr(row, key) for key in ("scope", "target", "limit", "used", "after", "borrowed")}


def _alternative(row: Any) -> dict[str, Any]:
    found = {key: getattr(row, key) for key in ("profile", "resource", "add", "units", "verdict")}
    return {**found, "served": plain(row.served)}


def _cost(cost: Cost) -> dict[str, Any]:
    tokens = cost.per_million_output_tokens
    return {
        "currency": cost.currency,
        "added_per_hour": round(float(cost.added_per_hour), 6),
        "whole_per_hour": round(float(cost.whole_per_hour), 6),
        "per_million_output_tokens": None if tokens is None else round(float(tokens), 6),
    }


def target_table(answer: Answer, cost: Cost | None = None, cost_note: str = "") -> str:
    """The verdict's sentence first, then tables and lists of what there is to say."""
    blocks = [sentence(answer)]
    if answer.rows:
        blocks.append(columns(_HEADS, [_cells(row) for row in answer.rows]))
    blocks.append("\n".join(line for line in (hold_sentence(answer), cost_sentence(cost)) if line))
    if answer.path:
        rows = [(row.scope, row.target, str(row.used), str(row.after), str(row.limit)) for row in answer.path]
        blocks.append(columns(("LIMIT OF", "ON", "USED", "AFTER", "LIMIT"), rows))
    blocks.append(_listed("In the way", [stopped(stop) for stop in answer.binding]))
    blocks.append(_listed("Missing", [wanting(row) for row in answer.missing]))
    blocks.append(_listed("Instead", instead(answer)))
    blocks.append(_listed("Notes", [*answer.notes, *([cost_note] if cost_note else [])]))
    blocks.append(_listed("Asked", asked_lines(answer)))
    return "\n\n".join(block for block in blocks if block)


_HEADS: Final = ("PROFILE", "HAS", "ADD", "UNITS", "ONE SERVES", "EVIDENCE", "NODES")


def _cells(row: PlanRow) -> tuple[str, ...]:
    nodes = ", ".join("+".join(nodes) for nodes in row.nodes)
    each = "–" if row.each is None else amount(row.each)
    units = f"{row.units} {row.resource}" if row.units else "–"
    return (row.profile, str(row.have), str(row.add), units, each, row.measured or "none", nodes or "–")


def _listed(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *(f"  {line}" for line in lines)]) if lines else ""


def instead(answer: Answer) -> list[str]:
    """Other ways to the same demand."""
    unit = UNITS[answer.question.unit]
    lines = [
        f"{row.profile} alone: +{row.add} on {row.units} {row.resource}, serving {amount(row.served)} {unit} ({row.verdict})"
        for row in answer.alternatives
    ]
    if answer.tight is not None and {row.profile: row.add for row in answer.tight} != {
        r.profile: r.add for r in answer.rows if r.add
    }:
        rows = ", ".join(f"{row.add} × {row.profile}" for row in answer.tight)
        lines.insert(0, f"tight: {rows or 'nothing more'}")
    return lines


def cost_sentence(cost: Cost | None) -> str:
    if cost is None:
        return ""
    tokens = cost.per_million_output_tokens
    more = f"{money(cost.added_per_hour)} {cost.currency} an hour more, {money(cost.whole_per_hour)} in all"
    text = f"It costs {more if cost.added_per_hour else f'{money(cost.whole_per_hour)} {cost.currency} an hour'}"
    return f"{text}." if tokens is None else f"{text}: {money(tokens)} {cost.currency} for a million output tokens when full."


def asked_lines(answer: Answer) -> list[str]:
    """Everything that was asked, defaults included."""
    options = options_of(answer.question)
    shown = {"scope": "the model's own", "profile": "all"}
    words = {key: plain(value) for key, value in answer.question.given.items()} | {
        key: value or shown.get(key, value) for key, value in options.items()
    }
    texts = [f"{key} {', '.join(value) if isinstance(value, list) else _said(value)}" for key, value in words.items()]
    return ["; ".join(texts), f"as of {answer.at}"]


def _said(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
