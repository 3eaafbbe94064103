"""The finished fleet: when one of it would be taken back, and what it serves behind a router that knows no capacities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from capacity.domain.load import tally
from capacity.domain.sizing.ground import Ground
from capacity.domain.sizing.types import PlanRow
from capacity.domain.types import Replica
from capacity.domain.victims import kept_capacity, victims


def hold_line(ground: Ground, added: Mapping[str, int]) -> Fraction | None:
    """Requests in flight under which one of the finished fleet is taken back, by the rule of the reconciler; None where none
    ever is: at the minimum, without one that may go, or on evidence that does not count for taking back."""
    names = {replica.name for replica in ground.serving}
    stay = [replace(replica, state="ready", in_flight=0, sampled_at=None) for replica in ground.serving]
    everyone = [*stay, *_newcomers(ground, added, names)]
    fleet = tally(ground.model, ground.own.ratings, everyone, ground.snapshot.settings, ground.snapshot.at)
    cordoned = frozenset(node.name for node in ground.snapshot.nodes or () if not node.schedulable)
    found = victims(fleet, cordoned, ground.snapshot.settings.scale_down_fraction, ground.snapshot.at)
    if found.first is None or fleet.live <= max(ground.model.min_replicas, 1):
        return None
    return found.fraction * kept_capacity(found, found.first) or None


def _newcomers(ground: Ground, added: Mapping[str, int], taken: set[str]) -> list[Replica]:
    """The started ones as if they were ready and idle, under names that nothing else has."""
    model = ground.model.name
    found: list[Replica] = []
    for profile, number in sorted(added.items()):
        for index in range(number):
            name = f"{profile} {index}"
            while name in taken:
                name += "'"
            at = ground.snapshot.at
            found.append(Replica(name=name, model=model, profile=profile, nodes=(), state="ready", since=at, in_flight=0))
    return found


def last_whole_under(line: Fraction) -> int:
    """268.8 → 268, 268 → 267."""
    return -(-line.numerator // line.denominator) - 1


def even_capacity(rows: Sequence[PlanRow]) -> Fraction | None:
    """What the fleet serves where each replica gets the same number: replicas × the smallest. None unless it is mixed and
    all of it is measured."""
    if len(rows) < 2 or any(row.each is None for row in rows):
        return None
    return sum(row.have + row.add for row in rows) * min(row.each for row in rows if row.each is not None)


def fleet_tokens(rows: Sequence[PlanRow]) -> Fraction | None:
    """Output tokens a second of the whole fleet at its measured concurrency."""
    if not rows or any(row.tokens_each is None for row in rows):
        return None
    return sum((row.tokens_each * (row.have + row.add) for row in rows if row.tokens_each is not None), Fraction(0))
