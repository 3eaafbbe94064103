"""What a pass has to give before anything is granted: room, and quotas with what is held counted against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from capacity.domain.granting import Granter
from capacity.domain.load import Tally
from capacity.domain.placement import Room
from capacity.domain.types import Node, Replica, Snapshot
from quotas.domain.policy import QuotaPolicy
from quotas.domain.types import Claim

Held = Sequence[tuple[Tally, Sequence[Replica]]]
"""Each model's count with its replicas."""


def granter_of(
    snapshot: Snapshot,
    held: Held,
    policy: QuotaPolicy,
    *,
    occupying: Held | None = None,
    charged: Mapping[str, str] | None = None,
    ended: Mapping[str, Sequence[Replica]] | None = None,
) -> Granter:
    """`occupying`: those that hold hardware, where that is not all of `held`; `charged`: model → the scope that pays for what
    is granted to it, where that is not its own; `ended`: model → those that this pass ends or drains whatever is granted."""
    quotas_known = snapshot.quotas is not None and snapshot.scopes is not None
    stores = {"quotas": quotas_known, "measurements": snapshot.measurements is not None}
    missing = tuple(store for store, known in stores.items() if not known)
    nodes = {node.name: node for node in snapshot.nodes or ()}
    room = room_of(snapshot, held if occupying is None else occupying) if snapshot.nodes is not None else None
    ended = ended or {}
    claims = [_claim(counted, ended.get(counted.model.name, ()), nodes) for counted, _ in held]
    ledger = None if missing else policy.ledger(claims, charged, capacity_of(snapshot))
    return Granter(ledger=ledger, room=room, nodes=nodes, missing=missing)


def capacity_of(snapshot: Snapshot) -> dict[str, int] | None:
    """Class → units on ready nodes; None where the nodes could not be read."""
    if snapshot.nodes is None:
        return None
    found: dict[str, int] = {}
    for node in snapshot.nodes:
        for resource, units in node.resources.items() if node.ready else ():
            found[resource] = found.get(resource, 0) + units
    return found


def room_of(snapshot: Snapshot, held: Held) -> Room:
    """What is free on the nodes beside these replicas."""
    room = Room(snapshot.nodes or (), snapshot.backoffs, snapshot.at)
    for counted, replicas in held:
        room.occupy(counted.ratings, replicas)
    return room


def _claim(counted: Tally, ended: Iterable[Replica], nodes: Mapping[str, Node]) -> Claim:
    going = [*counted.draining, *ended]
    leaving = Counter(replica.profile for replica in going)
    return Claim(
        model=counted.model.name,
        scope=counted.model.scope,
        units=_units(counted, counted.held_by_profile),
        replicas=counted.held,
        leaving=_units(counted, leaving),
        replicas_leaving=len(going),
        returning=_units(counted, Counter(r.profile for r in going if _gives_room(r, nodes))),
        using=_using(counted, leaving),
        priority=counted.model.priority,
        short_since=counted.model.short_since,
    )


def _units(counted: Tally, replicas: Mapping[str, int]) -> dict[str, int]:
    units: dict[str, int] = {}
    for profile, number in replicas.items():
        rating = counted.ratings[profile]
        resource = rating.profile.resource
        units[resource] = units.get(resource, 0) + rating.units * number
    return units


def _using(counted: Tally, leaving: Mapping[str, int]) -> dict[str, tuple[tuple[int, int], ...]]:
    """Class → (units of one replica, how many stay), the largest first."""
    sizes: dict[str, dict[int, int]] = {}
    for profile, held in counted.held_by_profile.items():
        rating = counted.ratings[profile]
        of_class = sizes.setdefault(rating.profile.resource, {})
        of_class[rating.units] = of_class.get(rating.units, 0) + held - leaving.get(profile, 0)
    return {
        resource: tuple(sorted(((size, count) for size, count in of_class.items() if count > 0), reverse=True))
        for resource, of_class in sizes.items()
    }


def _gives_room(replica: Replica, nodes: Mapping[str, Node]) -> bool:
    """Whether new replicas can be placed where it goes; one that has no node yet takes none."""
    return all((node := nodes.get(name)) is not None and node.schedulable and node.ready for name in replica.nodes)
