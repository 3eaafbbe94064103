"""The graph of scopes: who stands above whom, whatever the rows say. Cycles and unknown parents never stop a build."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from quotas.domain.types import Problem, Scope

SPELLED_OUT = 32
"""The longest cycle whose members are all named in a problem's detail."""


class Tenancy:
    """Scopes by name with the parents that exist. Built in time linear in rows and edges; ancestors are found when asked for."""

    __slots__ = ("_above", "cycles", "parents", "scopes", "tangled", "unknown")

    def __init__(self, scopes: Iterable[Scope]) -> None:
        self.scopes: dict[str, Scope] = {scope.name: scope for scope in scopes}
        self.parents: dict[str, tuple[str, ...]] = {}
        self.unknown: dict[str, tuple[str, ...]] = {}
        for name, scope in self.scopes.items():
            self._link(name, scope.parents)
        self.tangled: frozenset[str] = _on_or_below_cycles(self.parents)
        self.cycles: tuple[tuple[str, ...], ...] = tuple(_cycles(self.parents, self.tangled))
        self._above: dict[str, frozenset[str]] = {}

    def _link(self, name: str, parents: tuple[str, ...]) -> None:
        known = tuple(parent for parent in dict.fromkeys(parents) if parent in self.scopes)
        self.parents[name] = known
        if len(known) != len(parents):
            self.unknown[name] = tuple(parent for parent in dict.fromkeys(parents) if parent not in self.scopes)

    def ancestors(self, name: str) -> frozenset[str]:
        """`name` and all that parents reach, each once however many paths lead there."""
        found = self._above.get(name)
        if found is None:
            found = self._above[name] = self._climb(name)
        return found

    def _climb(self, name: str) -> frozenset[str]:
        seen = {name}
        todo = [name]
        while todo:
            for parent in self.parents.get(todo.pop(), ()):
                if parent not in seen:
                    seen.add(parent)
                    todo.append(parent)
        return frozenset(seen)

    def funding_parent(self, name: str) -> str | None:
        """The one parent through which guarantees come: the one marked, else the first that exists."""
        marked = self.scopes[name].funding_parent
        if marked is not None:
            return marked if marked in self.scopes else None
        return next(iter(self.parents[name]), None)

    def funding_line(self, name: str) -> tuple[str, ...]:
        """`name`, the scope that funds it, and so on up; `name` alone on and below cycles."""
        line = [name]
        while name not in self.tangled and (parent := self.funding_parent(name)) is not None:
            line.append(name := parent)
        return tuple(line)

    def problems(self) -> list[Problem]:
        """`unknown_parent`, `assumed_funding` and `cycle`, once a scope."""
        found = [_unknown_parent(name, missing) for name, missing in self.unknown.items() if missing]
        found += [
            Problem(code="assumed_funding", subject=f"scope:{scope.name}", detail=_assumed(scope))
            for scope in self.scopes.values()
            if len(scope.parents) > 1 and scope.funding_parent is None and len(set(scope.parents)) > 1
        ]
        for members in self.cycles:
            found += _cycle_problems(self.parents, members)
        return found


def _unknown_parent(name: str, missing: tuple[str, ...]) -> Problem:
    names = ", ".join(sorted(missing))
    return Problem(code="unknown_parent", subject=f"scope:{name}", detail=f"{names} does not exist; that parent is left out")


def _assumed(scope: Scope) -> str:
    return f"guarantees are taken to come through {scope.parents[0]}, the first of {len(scope.parents)} parents; none is marked"


def _on_or_below_cycles(parents: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """What is left once every scope whose parents are all settled has been settled: members of cycles and all below them."""
    waits = {name: len(above) for name, above in parents.items()}
    below: dict[str, list[str]] = {}
    for name, above in parents.items():
        for parent in above:
            below.setdefault(parent, []).append(name)
    todo = [name for name, missing in waits.items() if not missing]
    while todo:
        for child in below.get(todo.pop(), ()):
            waits[child] -= 1
            if not waits[child]:
                todo.append(child)
    return frozenset(name for name, missing in waits.items() if missing)


def _cycles(parents: Mapping[str, tuple[str, ...]], tangled: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """The knots among the tangled, each as its sorted members: strongly connected components (Kosaraju, without recursion)."""
    below: dict[str, list[str]] = {}
    for name in tangled:
        for parent in parents[name]:
            if parent in tangled:
                below.setdefault(parent, []).append(name)
    settled: set[str] = set()
    for root in reversed(_finishing_order(parents, tangled)):
        members = _reach(root, below, settled)
        # Empty where another root has settled it already.
        if len(members) > 1 or (members and root in parents[root]):
            yield tuple(sorted(members))


def _finishing_order(parents: Mapping[str, tuple[str, ...]], names: frozenset[str]) -> list[str]:
    """`names` in the order in which a walk up the parents has left them; sorted roots keep it the same for any order of rows."""
    order: list[str] = []
    seen: set[str] = set()
    for root in sorted(names):
        todo = [(root, False)]
        while todo:
            name, left = todo.pop()
            if left:
                order.append(name)
            elif name not in seen:
                seen.add(name)
                todo.append((name, True))
                todo.extend((parent, False) for parent in parents[name] if parent in names and parent not in seen)
    return order


def _reach(root: str, below: Mapping[str, list[str]], settled: set[str]) -> list[str]:
    if root in settled:
        return []
    settled.add(root)
    members, todo = [root], [root]
    while todo:
        for child in below.get(todo.pop(), ()):
            if child not in settled:
                settled.add(child)
                members.append(child)
                todo.append(child)
    return members


def _cycle_problems(parents: Mapping[str, tuple[str, ...]], members: tuple[str, ...]) -> list[Problem]:
    inside = frozenset(members)
    return [Problem(code="cycle", subject=f"scope:{name}", detail=_path(parents, inside, name)) for name in members]


def _path(parents: Mapping[str, tuple[str, ...]], inside: frozenset[str], name: str) -> str:
    """The shortest way from `name` up to itself, spelled out; of a large knot only its size, so that a build stays quick."""
    if len(inside) > SPELLED_OUT:
        above = min(parent for parent in parents[name] if parent in inside)
        return f"{name} → {above} → … → {name}, in a knot of {len(inside)} scopes"
    paths: list[tuple[str, ...]] = [(name,)]
    seen: set[str] = set()
    while paths:
        longer: list[tuple[str, ...]] = []
        for path in paths:
            for parent in sorted(set(parents[path[-1]]) & inside):
                if parent == name:
                    return " → ".join((*path, name))
                if parent not in seen:
                    seen.add(parent)
                    longer.append((*path, parent))
        paths = longer
    return name
