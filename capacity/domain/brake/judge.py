"""Which of a plan's actions are done and which are withheld, by which rule and with which numbers.

The brake stands between a plan, which is right about the snapshot it was given, and a fleet that the snapshot may be wrong
about. Actions are judged in the plan's order: who comes first passes first. Undrains start and stop nothing: only the brake
that a person pulls withholds them. What is only advice is no action here; leave it out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Literal

from capacity.domain.brake.types import Bounds, Counted, Event, Kind, Manual, Release, Rule, Situation, Verdict, Withheld
from capacity.domain.brake.words import manual_sentence, starts_sentence, stops_sentence, together_sentence
from capacity.domain.types import Action

FOR_UNREADINESS: Final = frozenset({"start_timeout", "rest_under_threshold", "idle"})
"""Reasons for which an unready replica goes that would stay if it were ready."""


def judge(actions: Iterable[Action], situation: Situation, bounds: Bounds, now: datetime) -> Verdict:
    """Each action is done or withheld; both in the plan's order."""
    tally = _Tally(situation, bounds, now)
    manual = situation.manual if holds(situation.manual, now) else None
    done, withheld = [], []
    for action in actions:
        rule, why = tally.rule_for(action)
        if manual is not None:
            withheld.append(Withheld(action=action, rule="manual", why=manual_sentence(manual), also=rule))
        elif rule is not None:
            withheld.append(Withheld(action=action, rule=rule, why=why))
        else:
            done.append(action)
    if manual is not None:
        return Verdict(done=(), withheld=tuple(withheld), events=(), release=standing(situation.release, now))
    return Verdict(done=tuple(done), withheld=tuple(withheld), events=tally.happened(), release=tally.left_of_release())


def holds(manual: Manual | None, now: datetime) -> bool:
    """A brake whose time has passed is off by itself."""
    return manual is not None and (manual.until is None or now < manual.until)


def standing(release: Release | None, now: datetime) -> Release | None:
    return release if release is not None and now < release.until else None


def recent(events: Iterable[Event], bounds: Bounds, now: datetime) -> list[Event]:
    """Those of the window. One far ahead of now was written by a clock that was wrong, and binds nobody for long."""
    window = timedelta(seconds=bounds.window_seconds)
    return [event for event in events if abs(now - event.at) < window]


def release_of(withheld: Iterable[Withheld], until: datetime) -> Release:
    """What lets through exactly these."""
    stops: Counter[str] = Counter()
    starts: Counter[str] = Counter()
    unready = set()
    for found in withheld:
        if found.action.op in {"drain", "cancel"}:
            stops[found.action.model] += 1
        elif found.action.op == "start":
            starts[found.action.model] += 1
        if found.is_for_unreadiness:
            unready.add(found.action.model)
    return Release(until=until, stops=dict(stops), starts=dict(starts), unready=frozenset(unready))


def exempt(died: int, replaced: int, min_replicas: int, held: int) -> int:
    """Starts of a model that only put back what died, up to its minimum. `died` and `replaced`: in the window; `held`: its
    replicas that are there and do not drain, unready ones too (they are not dead)."""
    return max(0, min(died - replaced, min_replicas - held))


def counted(situation: Situation, bounds: Bounds, now: datetime) -> Counted:
    """The numbers that pages and commands show beside the bounds."""
    tally = _Tally(situation, bounds, now)
    return Counted(stops=tally.stops, stops_allowed=tally.stops_allowed, starts=tally.starts, starts_allowed=bounds.starts)


class _Tally:
    """What has happened, and what of the plan has passed so far."""

    def __init__(self, situation: Situation, bounds: Bounds, now: datetime) -> None:
        own = [event for event in recent(situation.events, bounds, now) if not event.is_released]
        release = standing(situation.release, now)
        self._situation, self._bounds, self._now, self._release = situation, bounds, now, release
        self.stops = sum(event.count for event in own if event.kind == "stop")
        self.starts = sum(event.count for event in own if event.kind == "start")
        self.stops_allowed = max(bounds.stops, situation.ready * bounds.stop_percent // 100)
        self._units = Counter[str]()
        for event in own:
            if event.kind == "start":
                self._units[event.resource] += event.units
        self._full: set[str] = set()
        self._replaceable = Counter(situation.replaceable)
        self._granted = {
            "stop": Counter(release.stops if release else {}),
            "start": Counter(release.starts if release else {}),
        }
        self._happened: Counter[tuple[Kind, str, str, bool]] = Counter()
        self._sizes: dict[tuple[Kind, str, str, bool], int] = {}

    def rule_for(self, action: Action) -> tuple[Rule | None, str]:
        """The rule that withholds it and its sentence; (None, "") and it is counted where it passes."""
        if action.op == "undrain":
            return None, ""
        return self._start(action) if action.op == "start" else self._stop(action)

    def _stop(self, action: Action) -> tuple[Rule | None, str]:
        together = self._situation.together.get(action.model)
        is_named = self._release is not None and action.model in self._release.unready
        if together and not is_named and action.replica in self._situation.unready and action.reason in FOR_UNREADINESS:
            return "unready_together", together_sentence(together)
        if self._is_granted("stop", action):
            return None, ""
        if self.stops >= self.stops_allowed:
            return "stops", stops_sentence(self._bounds, self.stops_allowed)
        self.stops += 1
        self._note("stop", action)
        return None, ""

    def _start(self, action: Action) -> tuple[Rule | None, str]:
        resource, size = self._situation.sizes[action.model, action.profile]
        if action.reason == "below_min" and self._replaceable[action.model] > 0:
            self._replaceable[action.model] -= 1
            self._note("replacement", action)
            return None, ""
        if self._is_granted("start", action):
            return None, ""
        share = self._bounds.start_percent * self._situation.units.get(resource, 0)
        if resource in self._full or (self.starts >= self._bounds.starts and (self._units[resource] + size) * 100 > share):
            self._full.add(resource)  # a smaller one does not overtake one that the plan has before it
            return "starts", starts_sentence(self._bounds, resource, share // 100)
        self.starts += 1
        self._units[resource] += size
        self._note("start", action)
        return None, ""

    def _is_granted(self, kind: Literal["stop", "start"], action: Action) -> bool:
        if self._granted[kind][action.model] <= 0:
            return False
        self._granted[kind][action.model] -= 1
        self._note(kind, action, is_released=True)
        return True

    def _note(self, kind: Kind, action: Action, *, is_released: bool = False) -> None:
        resource, size = self._situation.sizes[action.model, action.profile] if action.op == "start" else ("", 0)
        key = (kind, action.model, resource, is_released)
        self._happened[key] += 1
        self._sizes[key] = self._sizes.get(key, 0) + size

    def happened(self) -> tuple[Event, ...]:
        return tuple(
            Event(
                at=self._now, kind=key[0], model=key[1], count=count, resource=key[2], units=self._sizes[key], is_released=key[3]
            )
            for key, count in self._happened.items()
        )

    def left_of_release(self) -> Release | None:
        if self._release is None:
            return None
        stops, starts = +self._granted["stop"], +self._granted["start"]
        left = replace(self._release, stops=dict(stops), starts=dict(starts))
        return left if stops or starts or left.unready else None
