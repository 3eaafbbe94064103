"""What models would start without quota and room, by class: the demands that entitlements are shared out by.

First in the class of the first profile in placement order; what the entitlement leaves of that moves to the next, rank by rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from capacity.domain.needs import Need
from capacity.domain.placement import Rating
from quotas.domain.ledger import Ledger

Steps = tuple[tuple[int, int], ...]


@dataclass(slots=True, kw_only=True)
class Wish:
    """One need on its way down the placement order. `floor`, `load`, `bound`: replicas below the minimum, demand in the need's
    unit and replicas within the maximum that no earlier profile is entitled to; `steps`: class → what is wished for so far."""

    need: Need
    ratings: list[Rating]
    floor: int
    load: int
    most: int
    rank: int = 0
    number: int = 0
    steps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    @property
    def rating(self) -> Rating:
        return self.ratings[self.rank]

    def ask(self) -> None:
        """Wish for what is left in the profile of this rank."""
        gives = self.need.gives(self.rating)
        wanted = -(-self.load // gives) if gives and self.load > 0 else 0
        if self.need.wake and not self.need.added:
            wanted = max(1, wanted)
        self.number = max(0, min(self.most, max(self.floor, min(wanted, self.need.step - self.need.added))))
        if self.number:
            self.steps.setdefault(self.rating.profile.resource, []).append((self.rating.units, self.number))

    def move_on(self, entitled: int) -> bool:
        """Keep the `entitled` first replicas of this rank's wish; whether another profile is now asked for the rest."""
        if entitled >= self.number or self.rank + 1 >= len(self.ratings):
            return False
        kept = self.steps[self.rating.profile.resource]
        kept[-1] = (self.rating.units, entitled)
        self.floor -= entitled
        self.load -= entitled * self.need.gives(self.rating)
        self.most -= entitled
        self.rank += 1
        self.ask()
        return True


class Wishes:
    """The wishes of a pass, taken up in turns: what is only advised after all that acts."""

    def __init__(self, ledger: Ledger | None) -> None:
        self._ledger = ledger
        self._known: list[Wish] = []

    def take_up(self, needs: Iterable[Need]) -> None:
        """Share out what there is among what is used, what was wished for before, and what these needs would start."""
        if self._ledger is None:
            return
        new = [wish for need in needs if (wish := _wish(need)) is not None]
        self._known += new
        while True:
            self._ledger.allocate({w.need.tally.model.name: {name: tuple(s) for name, s in w.steps.items()} for w in self._known})
            # all of one rank move on together, so that the order of models says nothing
            entitled = [_entitled(self._ledger, wish) for wish in new]
            moved = [wish.move_on(replicas) for wish, replicas in zip(new, entitled, strict=True)]
            if not any(moved):
                return


def _wish(need: Need) -> Wish | None:
    """None for a replacement: it is granted as what it is, one beyond what is used."""
    if need.evacuate or not need.open:
        return None
    useful = [r for r in need.order if r.profile.state == "active" and r.serves(need.purpose)]
    if not useful or need.tally.model.scope is None:
        return None
    most = need.tally.model.max_replicas
    back = sum(len(replicas) for replicas in need.drained.values())
    free = need.floor + need.step if most is None else max(0, most - need.tally.held - need.started + back)
    wish = Wish(need=need, ratings=useful, floor=need.floor - need.added, load=need.demand - need.capacity, most=free)
    wish.ask()
    return wish


def _entitled(ledger: Ledger, wish: Wish) -> int:
    """How many of the replicas of this rank's wish the model is entitled to."""
    model, rating = wish.need.tally.model.name, wish.rating
    before = sum(size * count for size, count in wish.steps.get(rating.profile.resource, ())) - rating.units * wish.number
    beyond = ledger.entitlement(model, rating.profile.resource) - ledger.opening(model, rating.profile.resource) - before
    return max(0, beyond) // rating.units
