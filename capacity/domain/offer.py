"""What a pass has to give before anything is granted: room, and quotas with what is held counted against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from capacity.domain.granting import Granter
from capacity.domain.load import Tally
from capacity.domain.placement import Room
from capacity.domain.types import Replica, Snapshot
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
) -> Granter:
    """`occupying`: those that hold hardware, where that is not all of `held`; `charged`: model → the scope that pays for what
    is granted to it, where that is not its own."""
    quotas_known = snapshot.quotas is not None and snapshot.scopes is not None
    stores = {"quotas": quotas_known, "measurements": snapshot.measurements is not None}
    missing = tuple(store for store, known in stores.items() if not known)
    nodes = {node.name: node for node in snapshot.nodes or ()}
    room = _room(snapshot, held if occupying is None else occupying) if snapshot.nodes is not None else None
    ledger = None if missing else policy.ledger([_claim(counted) for counted, _ in held], charged)
    return Granter(ledger=ledger, room=room, nodes=nodes, missing=missing)


def _claim(counted: Tally) -> Claim:
    units: dict[str, int] = {}
    for profile, replicas in counted.held_by_profile.items():
        rating = counted.ratings[profile]
        resource = rating.profile.resource
        units[resource] = units.get(resource, 0) + rating.units * replicas
    return Claim(model=counted.model.name, scope=counted.model.scope, units=units, replicas=counted.held)


def _room(snapshot: Snapshot, held: Held) -> Room:
    room = Room(snapshot.nodes or (), snapshot.backoffs, snapshot.at)
    for counted, replicas in held:
        room.occupy(counted.ratings, replicas)
    return room
