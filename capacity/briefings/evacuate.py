"""What cordoning or opening a node would come to, told by the plan on the live fleet. For page, API and command."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..clock import iso
from ..domain.evacuation import MOST_PASSES, Evacuation, Move, Opening, evacuation, opening
from ..domain.phrases import number
from ..domain.types import Action
from ..models import Node
from ..reconcile import pools, unbroken_since
from ..snapshot import build
from ..wiring import deps
from .inventory_file import in_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`found` None: hosts or replicas cannot be read now, so nobody can tell. `at` is when they were read, `last_pass_at` when
    the pool's last pass was (None: there was none): a preview locks nothing, and the next pass decides anew."""

    node: Node
    at: datetime
    last_pass_at: datetime | None
    found: Evacuation | Opening | None


def facts_of(node: Node, schedulable: bool, now: datetime) -> Facts:
    """Reads the live pool; writes nothing."""
    lease = pools(pk=node.pool_id)[0]
    built = build(deps(), lease, now, unbroken_since(lease, now))
    look = opening if schedulable else evacuation
    found = look(built.snapshot, node.name, built.policy)
    return Facts(node=node, at=now, last_pass_at=lease.last_pass_at, found=found)


def sentences_of(facts: Facts) -> list[str]:
    """The numbers first, as a person reads them."""
    found = facts.found
    if found is None:
        return ["Hosts and replicas cannot be read at the moment, so nobody can tell what would move."]
    if isinstance(found, Opening):
        return [_opening_sentence(found)]
    return list(_evacuation_sentences(found))


def _opening_sentence(found: Opening) -> str:
    starts = number(len(found.starts), "replica")
    return f"{in_words(found.free).capitalize()} would be free for new replicas; the next pass would start {starts} there."


def _evacuation_sentences(found: Evacuation) -> list[str]:
    if not found.moves:
        return ["Nothing runs there: nothing moves, and nothing new is placed."]
    counts = (
        f"{number(found.moving, 'replica')} would move, {found.ending} would go without a replacement, "
        f"{found.staying} would stay."
    )
    if not found.freed:
        return [counts, "Nothing would come free."]
    passes = f"over at least {found.passes} pass{'' if found.passes == 1 else 'es'}"
    if not found.is_settled:
        passes = f"and it would not be over after {MOST_PASSES} passes"
    units = f"{in_words(found.freed).capitalize()} would be given back, {passes}."
    stays = f"{in_words(found.held).capitalize()} would go on being held there." if found.held else ""
    return [text for text in (counts, units, stays) if text]


def sentence_of(move: Move) -> str:
    """What would become of one replica."""
    if move.fate == "moves":
        return f"moves to {', '.join(move.nodes)} ({move.to_profile})"
    if move.fate == "ends":
        return "goes; the rest does without it" if move.reason == "evacuate" else "goes"
    return f"stays; of {move.model} the plan says: {move.why}" if move.why else "stays"


def document(facts: Facts) -> dict[str, Any]:
    """As the API and the command write it; null for what nobody can tell."""
    found = facts.found
    return {
        "node": facts.node.name,
        "schedulable": facts.node.schedulable,
        "at": iso(facts.at),
        "last_pass_at": iso(facts.last_pass_at) if facts.last_pass_at else None,
        "sentences": sentences_of(facts),
        "evacuation": _evacuation(found) if isinstance(found, Evacuation) else None,
        "opening": _opening(found) if isinstance(found, Opening) else None,
    }


def _evacuation(found: Evacuation) -> dict[str, Any]:
    return {
        "moves": [_move(move) for move in found.moves],
        "moving": found.moving,
        "ending": found.ending,
        "staying": found.staying,
        "freed": dict(found.freed),
        "held": dict(found.held),
        "passes": found.passes,
        "is_settled": found.is_settled,
    }


def _move(move: Move) -> dict[str, Any]:
    return {
        "replica": move.replica,
        "model": move.model,
        "profile": move.profile,
        "units": move.units,
        "class": move.resource,
        "fate": move.fate,
        "reason": move.reason,
        "why": move.why,
        "to_profile": move.to_profile or None,
        "nodes": list(move.nodes),
        "passes": move.passes,
    }


def _opening(found: Opening) -> dict[str, Any]:
    return {"free": dict(found.free), "starts": [_start(action) for action in found.starts]}


def _start(action: Action) -> dict[str, Any]:
    return {"model": action.model, "profile": action.profile, "reason": action.reason, "advice": action.advice}
