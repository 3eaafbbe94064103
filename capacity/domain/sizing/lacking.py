"""What is missing, in the units that an operator can buy, free or allow."""

from __future__ import annotations

from capacity.domain.granting import MOST_GRANTS, Granter
from capacity.domain.needs import Need
from capacity.domain.placement import Rating, Room
from capacity.domain.sizing.ground import Ground
from capacity.domain.sizing.types import MissingLimit, MissingUnits


def lacking(ground: Ground, granter: Granter, need: Need, spare: int) -> tuple[MissingUnits | MissingLimit, ...]:
    """The whole replicas of the first measured profile that the rest and the `spare` ones need: units beyond those that still
    find room, and each limit above that they would pass. Takes what room is left: nothing is granted after it."""
    rating = _first_measured(ground)
    replicas = _replicas(ground, need, spare, rating)
    if rating is None or granter.ledger is None or granter.room is None or not replicas:
        return ()
    units = _units(granter.room, rating, replicas)
    limits = _limits(ground, granter, rating, replicas)
    return (*units, *limits)


def max_needed(ground: Ground, need: Need, spare: int) -> int | None:
    """What `max_replicas` would have to be, None where it allows the rest."""
    most, rating = ground.model.max_replicas, _first_measured(ground)
    needed = ground.own.held + need.started + _replicas(ground, need, spare, rating)
    return needed if most is not None and rating is not None and needed > most else None


def _first_measured(ground: Ground) -> Rating | None:
    return next((r for r in ground.order if r.profile.state == "active" and ground.gives(r)), None)


def _replicas(ground: Ground, need: Need, spare: int, rating: Rating | None) -> int:
    if rating is None:
        return 0
    return max(0, -(-(need.demand - need.capacity) // ground.gives(rating))) + spare


def _units(room: Room, rating: Rating, replicas: int) -> tuple[MissingUnits, ...]:
    found = _that_find_room(room, rating, replicas)
    without = replicas - found
    if not without or found == MOST_GRANTS:
        # room for more than any plan gives is not what is missing
        return ()
    profile = rating.profile
    return (
        MissingUnits(
            resource=profile.resource,
            units=without * rating.units,
            on_one_node=profile.units,
            profile=profile.name,
            replicas=without,
        ),
    )


def _that_find_room(room: Room, rating: Rating, replicas: int) -> int:
    found = 0
    while found < min(replicas, MOST_GRANTS) and (nodes := room.find(rating.profile)) is not None:
        room.take(rating.profile, nodes)
        found += 1
    return found


def _limits(ground: Ground, granter: Granter, rating: Rating, replicas: int) -> tuple[MissingLimit, ...]:
    if granter.ledger is None:
        return ()
    found: list[MissingLimit] = []
    for row in granter.ledger.standing(ground.model.name, rating.profile.resource):
        needed = replicas if row.target.startswith("model:") else replicas * rating.units
        if (over := row.used + needed - row.limit) > 0:
            found.append(MissingLimit(scope=row.scope, target=row.target, limit=over))
    return tuple(found)
