"""Which faults, on what, when: drawn from a seed, so that each schedule can be run again by itself. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from .rows import HOSTS, LIMIT, MODELS, UNITS_OF_A_HOST

SPAN_SECONDS = 6.0
CONTROL = ("redis", "web", "worker", "worker-2", "beat", "beat-2")
NODES = tuple(f"node-{host}" for host in HOSTS)
LONG_EACH = 5  # schedules from one that waits for a lease or a host to be over to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`after`: seconds from the schedule's begin; `seconds`: how long it lasts; `value`: what is written, by kind."""

    kind: str
    target: str
    after: float
    seconds: float = 0.0
    value: Mapping[str, object] | float | bool | None = None

    def __str__(self) -> str:
        lasts = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.after:4.1f} s  {self.kind} {self._whom()}{lasts}{self._how()}"

    def _whom(self) -> str:
        """Which engine or child it is depends on those that there are then; two numbers would tell a reader nothing."""
        if self.kind in ("kill_engine", "pause_engine"):
            return "an engine"
        return f"of {self.target}" if self.kind == "kill_child" else self.target

    def _how(self) -> str:
        if self.kind == "cut":
            return ", Redis forgets its connections" if self.value else ", Redis keeps its connections"
        if isinstance(self.value, Mapping):
            return ": " + ", ".join(f"{name} {value}" for name, value in self.value.items())
        return f", by {self.value:+g} s" if self.kind == "clock" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    seed: int
    number: int
    faults: tuple[Fault, ...]


def schedule(seed: int, number: int) -> Schedule:
    """Three to five faults on different targets; every kind's turn comes within as many schedules as there are kinds."""
    dice = random.Random(f"{seed}:{number}")
    kinds = list(KINDS)
    random.Random(seed).shuffle(kinds)
    chosen = [
        kinds[number % len(kinds)],
        kinds[(number + len(kinds) // 2) % len(kinds)],
        *dice.choices(kinds, k=dice.randint(1, 3)),
    ]
    faults = [long_one(dice)] if number % LONG_EACH == LONG_EACH - 1 else []
    for kind in chosen:
        fault = KINDS[kind](dice)
        if all(fault.target != other.target for other in faults):
            faults.append(fault)
    return Schedule(seed=seed, number=number, faults=tuple(sorted(faults, key=lambda fault: fault.after)))


def long_one(dice: random.Random) -> Fault:
    """A worker, or a pass in its middle, that is stopped until its lease is over, or a host that is away until it is lost."""
    kind = dice.choice(("pause", "pause_pass", "cut"))
    if kind != "cut":
        return Fault(kind=kind, target=dice.choice(("worker", "worker-2")), after=_soon(dice), seconds=35.0)
    return Fault(kind="cut", target=dice.choice(HOSTS), after=_soon(dice), seconds=50.0, value=dice.random() < 0.5)


def _kill(dice: random.Random) -> Fault:
    return Fault(kind="kill", target=dice.choice(CONTROL + NODES), after=_soon(dice), seconds=dice.uniform(0.1, 2))


def _kill_child(dice: random.Random) -> Fault:
    return Fault(kind="kill_child", target=dice.choice(("worker", "worker-2", "web")), after=_soon(dice), value=_share(dice))


def _kill_pass(dice: random.Random) -> Fault:
    return Fault(kind="kill_pass", target="pass", after=_soon(dice))


def _kill_engine(dice: random.Random) -> Fault:
    return Fault(kind="kill_engine", target=f"engine-{dice.randrange(1000)}", after=_soon(dice), value=_share(dice))


def _pause(dice: random.Random) -> Fault:
    return Fault(kind="pause", target=dice.choice(CONTROL + NODES), after=_soon(dice), seconds=dice.uniform(0.5, 6))


def _pause_engine(dice: random.Random) -> Fault:
    return Fault(
        kind="pause_engine",
        target=f"engine-{dice.randrange(1000)}",
        after=_soon(dice),
        seconds=dice.uniform(2, 6),
        value=_share(dice),
    )


def _cut(dice: random.Random) -> Fault:
    """`value`: whether Redis forgets the connections meanwhile."""
    return Fault(kind="cut", target=dice.choice(HOSTS), after=_soon(dice), seconds=dice.uniform(1, 14), value=dice.random() < 0.5)


def _clock(dice: random.Random) -> Fault:
    step = dice.choice((-3600, -45, -12, -2, 2, 12, 45, 3600))
    return Fault(kind="clock", target=dice.choice(HOSTS), after=_soon(dice), seconds=dice.uniform(2, 8), value=float(step))


def _edit_bounds(dice: random.Random) -> Fault:
    kind = dice.choice(MODELS)
    most = dice.randint(1, kind.at_most + 1)
    values = {"min_replicas": dice.randint(0, most), "max_replicas": most}
    return Fault(kind="edit_bounds", target=kind.name, after=_soon(dice), value=values)


def _edit_mode(dice: random.Random) -> Fault:
    mode = dice.choice(("paused", "advise", "add_only"))
    return Fault(kind="edit_mode", target=dice.choice(MODELS).name, after=_soon(dice), value={"mode": mode})


def _edit_limit(dice: random.Random) -> Fault:
    return Fault(kind="edit_limit", target="limit", after=_soon(dice), value={"limit": dice.randint(0, LIMIT + 2)})


def _edit_parameters(dice: random.Random) -> Fault:
    return Fault(
        kind="edit_parameters",
        target=dice.choice(MODELS).name,
        after=_soon(dice),
        value={"load_seconds": str(dice.randint(0, 3))},
    )


def _cordon(dice: random.Random) -> Fault:
    return Fault(kind="cordon", target=dice.choice(HOSTS), after=_soon(dice))


def _load(dice: random.Random) -> Fault:
    """Requests that a gateway holds for a model: replicas are needed at once, and are not any more soon after."""
    return Fault(
        kind="load", target=dice.choice(MODELS).name, after=_soon(dice), value={"held": dice.randint(3, 3 * UNITS_OF_A_HOST)}
    )


def _share(dice: random.Random) -> float:
    """Which one of those that there are then."""
    return round(dice.random(), 3)


def _burst(dice: random.Random) -> Fault:
    """The same, and many passes at once."""
    return replace(_load(dice), kind="burst", seconds=4.0)


def _soon(dice: random.Random) -> float:
    return dice.uniform(0, SPAN_SECONDS)


KINDS: Mapping[str, Callable[[random.Random], Fault]] = {
    "kill": _kill,
    "pause": _pause,
    "edit_bounds": _edit_bounds,
    "cut": _cut,
    "kill_child": _kill_child,
    "load": _load,
    "burst": _burst,
    "kill_engine": _kill_engine,
    "kill_pass": _kill_pass,
    "clock": _clock,
    "edit_limit": _edit_limit,
    "pause_engine": _pause_engine,
    "cordon": _cordon,
    "edit_mode": _edit_mode,
    "edit_parameters": _edit_parameters,
}
