"""How what is too little for all is shared out, in whole units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction


def in_proportion(total: int, claims: Mapping[str, int]) -> dict[str, int]:
    """`total` split in proportion to the claims, each rounded down, and what is left one each by the largest remainder, then
    name (Hamilton's method). Claims that fit are met as they are; nobody gets more than his claim."""
    asked = sum(claims.values())
    if asked <= total:
        return dict(claims)
    shares = {name: total * claim // asked for name, claim in claims.items()}
    left = total - sum(shares.values())
    for name in sorted(claims, key=lambda name: (-(total * claims[name] % asked), name))[:left]:
        shares[name] += 1
    return shares


@dataclass(slots=True, kw_only=True)
class Claimant:
    """Who takes part in a filling: `total` is what it has so far, `steps` (size, how many) what it may still get, in order."""

    name: str
    weight: int
    total: int
    steps: list[tuple[int, int]]

    @property
    def wanted(self) -> int:
        return sum(size * count for size, count in self.steps)

    @property
    def pull(self) -> int:
        """Its weight; those without one are equal among themselves."""
        return self.weight or 1

    def reached(self, level: int, shift: int) -> int:
        """Its total once all its steps are taken that begin below the level (`level` / 2^`shift` of total / weight)."""
        total = self.total
        line = -(-level * self.pull >> shift)  # the first whole total that is not below the level
        for size, count in self.steps:
            taken = min(count, max(0, -((total - line) // size)))
            total += size * taken
            if taken < count:
                break
        return total

    def rise(self, total: int) -> None:
        """Take steps up to `total`, which `reached` gave or which is one step on."""
        while self.total < total:
            size, count = self.steps[0]
            taken = min(count, (total - self.total) // size)
            self.total += size * taken
            self.steps[0] = (size, count - taken)
            if taken == count:
                del self.steps[0]


def fill(left: int, claimants: Iterable[Claimant]) -> int:
    """Weighted max-min: step after step goes to the claimant with the least total / weight, ties by name, weight 0 after all
    others. Steps are taken whole; who cannot take his next one whole takes no more. Returns what is left.

    As one by one, and yet in a time that does not grow with the numbers: the common level is found by bisection.
    """
    waiting = [claimant for claimant in claimants if claimant.steps]
    for some in ([c for c in waiting if c.weight], [c for c in waiting if not c.weight]):
        left = _fill_peers(left, some)
    return left


def _fill_peers(left: int, peers: list[Claimant]) -> int:
    if sum(peer.wanted for peer in peers) <= left:
        for peer in peers:
            left -= peer.wanted
            peer.rise(peer.total + peer.wanted)
        return left
    peers = [peer for peer in peers if peer.steps[0][0] <= left]
    while peers and left:
        left = _rise_together(left, peers)
        peers = [peer for peer in peers if peer.steps and peer.steps[0][0] <= left]
    return left


def _rise_together(left: int, peers: list[Claimant]) -> int:
    """Raise all to the highest common level that `left` allows. Up to the next level each has one step at most: those go in
    order, and at least one of them no longer fits."""
    shift = max(peer.pull for peer in peers).bit_length()
    level = _common_level(left, peers, shift)
    for peer in peers:
        total = peer.reached(level, shift)
        left -= total - peer.total
        peer.rise(total)
    turns = sorted((Fraction(peer.total, peer.pull), peer.name, peer) for peer in peers if peer.steps)
    for key, _, peer in turns:
        size = peer.steps[0][0]
        if key < Fraction(level + 1, 1 << shift) and size <= left:
            left -= size
            peer.rise(peer.total + size)
    return left


def _common_level(left: int, peers: list[Claimant], shift: int) -> int:
    low, high = 0, (max((peer.total + peer.wanted) // peer.pull for peer in peers) + 1) << shift
    held = sum(peer.total for peer in peers)
    while high - low > 1:
        middle = (low + high) // 2
        if sum(peer.reached(middle, shift) for peer in peers) - held <= left:
            low = middle
        else:
            high = middle
    return low
