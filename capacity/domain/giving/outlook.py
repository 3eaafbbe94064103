"""Room and limits as they will be once all that drains, or is ended by this pass, is gone."""

from __future__ import annotations

from collections.abc import Iterable

from capacity.domain.load import Tally
from capacity.domain.placement import Rating, Room
from capacity.domain.types import Replica
from quotas.domain.ledger import Ledger
from quotas.domain.types import Quota


class Outlook:
    """What is done to it can be undone, so that a set of replicas can be tried. `ledger`: with the pass's grants."""

    def __init__(self, room: Room, ledger: Ledger) -> None:
        self._room, self._ledger = room, ledger
        self._used: dict[tuple[str, str], int] = {}

    def used(self, row: Quota) -> int:
        """Units (replicas, of a row on a model) under the row then."""
        key = (row.scope, row.target)
        if key not in self._used:
            self._used[key] = self._ledger.used(row) - self._ledger.leaving(row)
        return self._used[key]

    def blocking(self, model: str, rating: Rating) -> list[Quota]:
        """The rows that one more replica of the profile would pass."""
        rows = self._ledger.rows(model, rating.profile.resource)
        return [row for row in rows if row.limit is not None and self.used(row) + _counts(row, rating) > row.limit]

    def is_over(self, model: str, resource: str) -> bool:
        """Whether the model's replicas in the class stand under a limit that is passed by what stays."""
        rows = self._ledger.rows(model, resource)
        return any(row.limit is not None and self.used(row) > row.limit for row in rows)

    def place_for(self, rating: Rating) -> tuple[str, ...] | None:
        """The nodes on which one more replica of the profile would fit."""
        return self._room.find(rating.profile)

    def usable(self, rating: Rating, nodes: Iterable[str]) -> bool:
        """Whether a replica on these nodes makes room for the profile; one without a node counts as on any."""
        names = tuple(nodes)
        return not names or self._room.usable(rating.profile, names)

    def place(self, model: str, rating: Rating, nodes: tuple[str, ...]) -> None:
        self._room.take(rating.profile, nodes)
        self._count(model, rating, 1)

    def unplace(self, model: str, rating: Rating, nodes: tuple[str, ...]) -> None:
        self._room.release(rating.profile, nodes)
        self._count(model, rating, -1)

    def end(self, counted: Tally, replica: Replica) -> None:
        """The replica is gone."""
        self._move(counted, replica, -1)

    def keep(self, counted: Tally, replica: Replica) -> None:
        """It stays after all."""
        self._move(counted, replica, 1)

    def _move(self, counted: Tally, replica: Replica, by: int) -> None:
        rating = counted.rating(replica)
        if not replica.nodes:
            self._room.keep_free(rating.profile, by)
        elif by < 0:
            self._room.release(rating.profile, replica.nodes)
        else:
            self._room.take(rating.profile, replica.nodes)
        self._count(counted.model.name, rating, by)

    def _count(self, model: str, rating: Rating, by: int) -> None:
        for row in self._ledger.rows(model, rating.profile.resource):
            self._used[row.scope, row.target] = self.used(row) + by * _counts(row, rating)


def _counts(row: Quota, rating: Rating) -> int:
    return rating.units if row.model is None else 1
