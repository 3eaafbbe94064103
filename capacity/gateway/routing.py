"""Where a request goes, and what is in flight and held meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

MAX_HELD_PER_MODEL = 200
HOLD_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    replica: str
    model: str
    url: str
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """What the control plane last said: where to send, and the models there are (served name or name → name)."""

    endpoints: tuple[Endpoint, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


def parse_endpoints(document: object) -> Endpoints | None:
    """The control plane's answer; a row that makes no sense is left out, an answer that makes none is None."""
    if not isinstance(document, dict) or not isinstance(document.get("endpoints"), list):
        return None
    found = [endpoint for row in document["endpoints"] if (endpoint := _endpoint(row)) is not None]
    rows = document.get("models")
    served = {alias: name for row in rows for alias, name in _names(row)} if isinstance(rows, list) else {}
    own = {name: name for name in [*served.values(), *(endpoint.model for endpoint in found)]}
    return Endpoints(endpoints=tuple(found), names={**served, **own})


def pick(endpoints: Sequence[Endpoint], in_flight: Mapping[str, int], tried: Collection[str] = ()) -> Endpoint | None:
    """The replica with the least in flight for its weight; of equals the heaviest, then by name. None where there is none.

    One of weight 0 (measured: it keeps its objective at no load at all) is taken only where there is no other."""
    candidates = [endpoint for endpoint in endpoints if endpoint.replica not in tried]
    return min(
        candidates,
        key=lambda endpoint: (
            endpoint.weight == 0,
            in_flight.get(endpoint.replica, 0) / max(endpoint.weight, 1),
            -endpoint.weight,
            endpoint.replica,
        ),
        default=None,
    )


class Router:
    """The routing state of one gateway; used inside one event loop."""

    def __init__(self) -> None:
        self.known = Endpoints()
        self.in_flight: Counter[str] = Counter()
        self.held: Counter[str] = Counter()
        self.last_arrival: dict[str, float] = {}
        self._changed = asyncio.Condition()

    async def update(self, known: Endpoints) -> None:
        """Take a new list; requests that are held look again."""
        self.known = known
        async with self._changed:
            self._changed.notify_all()

    def arrived(self, model: str, at: float) -> None:
        self.last_arrival[model] = at

    async def find(self, model: str, tried: Collection[str]) -> Endpoint | None:
        """A replica that was not tried yet; waits while there is none. None where too many wait or it takes too long."""
        found = self._pick(model, tried)
        if found is not None or self.held[model] >= MAX_HELD_PER_MODEL:
            return found
        with _counted(self.held, model):
            return await self._wait(model, tried)

    async def _wait(self, model: str, tried: Collection[str]) -> Endpoint | None:
        try:
            async with asyncio.timeout(HOLD_SECONDS), self._changed:
                await self._changed.wait_for(lambda: self._pick(model, tried) is not None)
        except TimeoutError:
            return None
        return self._pick(model, tried)

    def sending(self, endpoint: Endpoint) -> AbstractContextManager[None]:
        """Count a request as in flight on its replica while the block runs."""
        return _counted(self.in_flight, endpoint.replica)

    def push_document(self, source: str, now: float) -> dict[str, object]:
        """What `POST /api/v1/load` takes: every replica that is routed to or still streams, every model that is known."""
        replicas = {endpoint.replica for endpoint in self.known.endpoints} | {
            name for name, number in self.in_flight.items() if number
        }
        models = set(self.known.names.values())
        return {
            "source": source,
            "replicas": {name: self.in_flight[name] for name in sorted(replicas)},
            "models": {name: self._model_document(name, now) for name in sorted(models)},
        }

    def _model_document(self, model: str, now: float) -> dict[str, object]:
        arrival = self.last_arrival.get(model)
        ago = {} if arrival is None else {"last_arrival_seconds_ago": round(max(0.0, now - arrival), 3)}
        return {"held": self.held[model], **ago}

    def _pick(self, model: str, tried: Collection[str]) -> Endpoint | None:
        return pick([endpoint for endpoint in self.known.endpoints if endpoint.model == model], self.in_flight, tried)


@contextmanager
def _counted(counter: Counter[str], key: str) -> Iterator[None]:
    counter[key] += 1
    try:
        yield
    finally:
        counter[key] -= 1


def _names(row: object) -> Iterator[tuple[str, str]]:
    """(served name, name) of a model's row; nothing where it makes no sense."""
    name = row.get("name") if isinstance(row, dict) else None
    if not isinstance(row, dict) or not isinstance(name, str):
        return
    yield name, name
    served = row.get("served_names")
    for alias in served if isinstance(served, list) else []:
        if isinstance(alias, str):
            yield alias, name


def _endpoint(row: object) -> Endpoint | None:
    if not isinstance(row, dict):
        return None
    replica, model, url, weight = (row.get(name) for name in ("replica", "model", "url", "weight"))
    if not (
        isinstance(replica, str) and isinstance(model, str) and isinstance(url, str) and url.startswith(("http://", "https://"))
    ):
        return None
    return Endpoint(replica=replica, model=model, url=url.rstrip("/"), weight=_weight(weight))


def _weight(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 1
