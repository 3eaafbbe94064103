"""A view of a store that may fail: at most 30 s old while the store answers, the last good answer while it does not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")

REFRESH_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[T]):
    """What the view knows. `value` None: never loaded. `error` is why the newest try failed, empty when it did not."""

    value: T | None
    read_at: datetime | None
    error: str = ""

    def age_seconds(self, now: datetime) -> int | None:
        """Whole seconds since the store gave this answer; None where it never gave one."""
        return None if self.read_at is None else max(0, int((now - self.read_at).total_seconds()))


class Keeper(Protocol[T]):
    """Keeps the last good answer beyond the life of a process. Its failures are its own: both calls return quietly."""

    def recall(self) -> tuple[T, datetime] | None: ...

    def keep(self, value: T, read_at: datetime) -> None: ...


class LastGood(Generic[T]):
    """Asks `load` when the last try is `refresh_seconds` old, and never more often, whatever its outcome.

    `load` gets the value held so far (None at first) so that it may return it unchanged. It raises when the store fails.
    Askers from several threads share one read: the later ones wait for it and take its answer.
    """

    def __init__(
        self, load: Callable[[T | None], T], keeper: Keeper[T] | None = None, refresh_seconds: int = REFRESH_SECONDS
    ) -> None:
        self._load = load
        self._keeper = keeper
        self._refresh = timedelta(seconds=refresh_seconds)
        self._lock = threading.Lock()
        self._reading: Reading[T] = Reading(value=None, read_at=None)
        self._tried_at: datetime | None = None

    def get(self, now: datetime) -> Reading[T]:
        """The present reading; asks the store first where it is due."""
        with self._lock:
            if self._tried_at is None or now - self._tried_at >= self._refresh:
                self._tried_at = now
                self._reading = self._ask(now)
            return self._reading

    def expire(self) -> None:
        """Makes the next `get` ask the store: for who has just written to it."""
        with self._lock:
            self._tried_at = None

    def _ask(self, now: datetime) -> Reading[T]:
        held = self._reading
        try:
            value = self._load(held.value)
        except Exception as error:  # whatever a store throws, the last good answer stays
            return self._after_failure(held, f"{type(error).__name__}: {error}")
        if self._keeper:
            self._keeper.keep(value, now)
        return Reading(value=value, read_at=now)

    def _after_failure(self, held: Reading[T], error: str) -> Reading[T]:
        if held.read_at is None and self._keeper and (kept := self._keeper.recall()):
            return Reading(value=kept[0], read_at=kept[1], error=error)
        return Reading(value=held.value, read_at=held.read_at, error=error)
