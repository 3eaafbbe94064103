"""The brake's rules, case by case: what passes, what is withheld, by which rule and with which numbers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from capacity.domain.brake import (
    Bounds,
    Event,
    Manual,
    Release,
    Situation,
    Standing,
    Together,
    Verdict,
    counted,
    exempt,
    judge,
    recent,
    release_of,
    together,
)
from capacity.domain.types import Action

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SIZES = {("chat", "p"): ("gpu", 2), ("code", "p"): ("gpu", 1)}
BOUNDS = Bounds()


def ago(seconds: int) -> datetime:
    return NOW - timedelta(seconds=seconds)


def drain(replica: str = "r", model: str = "chat", reason: str = "rest_under_threshold") -> Action:
    return Action(op="drain", model=model, reason=reason, profile="p", replica=replica)


def drains(count: int, **fields: str) -> list[Action]:
    return [drain(f"r{number}", **fields) for number in range(count)]


def start(model: str = "chat", reason: str = "over_capacity") -> Action:
    return Action(op="start", model=model, reason=reason, profile="p", nodes=("n",))


def situation(**fields: object) -> Situation:
    return Situation(**{"ready": 10, "units": {"gpu": 8}, "sizes": SIZES, **fields})  # type: ignore[arg-type]


def rules(verdict: Verdict) -> list[str]:
    return [found.rule for found in verdict.withheld]


@pytest.mark.parametrize(
    ("ready", "asked", "passes"),
    [(0, 3, 2), (10, 3, 2), (19, 5, 2), (29, 5, 2), (30, 5, 3), (100, 30, 10)],
)
def test_two_stops_or_a_tenth_of_the_ready_replicas_pass(ready, asked, passes):
    verdict = judge(drains(asked), situation(ready=ready), BOUNDS, NOW)
    assert len(verdict.done) == passes
    assert rules(verdict) == ["stops"] * (asked - passes)
    assert [event.count for event in verdict.events] == [passes]


def test_cancels_are_stops_and_undrains_are_neither_stops_nor_starts():
    cancel = replace(drain("c"), op="cancel", reason="start_timeout")
    undrains = [replace(drain(f"u{number}"), op="undrain") for number in range(20)]
    verdict = judge([*drains(2), cancel, *undrains], situation(), BOUNDS, NOW)
    assert [found.action for found in verdict.withheld] == [cancel]
    assert counted(situation(events=verdict.events), BOUNDS, NOW).stops == 2


@pytest.mark.parametrize(("seconds", "passes"), [(0, 0), (1, 0), (599, 0), (600, 2), (601, 2), (-599, 0), (-600, 2)])
def test_stops_are_counted_for_the_window_and_a_wrong_clock_binds_no_longer(seconds, passes):
    before = (Event(at=ago(seconds), kind="stop", model="code", count=2),)
    assert len(judge(drains(3), situation(events=before), BOUNDS, NOW).done) == passes
    assert len(recent(before, BOUNDS, NOW)) == (0 if passes else 1)


@pytest.mark.parametrize(
    ("units", "model", "passes"),
    [(0, "chat", 8), (8, "chat", 8), (64, "chat", 8), (80, "chat", 10), (40, "code", 10), (39, "code", 9), (400, "chat", 20)],
)
def test_eight_starts_or_a_quarter_of_the_units_pass(units, model, passes):
    verdict = judge([start(model) for _ in range(20)], situation(units={"gpu": units}), BOUNDS, NOW)
    assert len(verdict.done) == passes
    assert rules(verdict) == ["starts"] * (20 - passes)


def test_units_are_counted_by_class():
    before = (Event(at=ago(5), kind="start", model="x", count=8, resource="cpu", units=800),)
    verdict = judge([start()] * 3, situation(units={"gpu": 16, "cpu": 1000}, events=before), BOUNDS, NOW)
    assert len(verdict.done) == 2  # 4 of 16 units: the 8 of the other class are no units of this one
    assert counted(situation(events=before), BOUNDS, NOW).starts == 8


def test_the_first_of_the_plan_pass_first():
    asked = [start("code"), *[start()] * 8, start("code")]
    verdict = judge(asked, situation(), BOUNDS, NOW)
    assert list(verdict.done) == asked[:8]
    assert [found.action for found in verdict.withheld] == asked[8:]


def test_a_smaller_start_does_not_overtake_a_larger_one_of_its_class():
    asked = [start("code"), start("chat"), start("code")]
    verdict = judge(asked, situation(units={"gpu": 8}), Bounds(starts=0), NOW)
    assert list(verdict.done) == asked[:1]


def test_starts_in_the_place_of_the_dead_pass_and_are_not_counted():
    full = (Event(at=ago(5), kind="start", model="code", count=8, resource="gpu", units=8),)
    asked = [start(reason="below_min")] * 4 + [start(reason="over_capacity")]
    verdict = judge(asked, situation(events=full, replaceable={"chat": 3}), BOUNDS, NOW)
    assert (len(verdict.done), rules(verdict)) == (3, ["starts", "starts"])
    assert [(event.kind, event.count) for event in verdict.events] == [("replacement", 3)]


@pytest.mark.parametrize(
    ("died", "replaced", "least", "held", "starts"),
    [(3, 0, 4, 1, 3), (3, 2, 4, 3, 1), (3, 3, 4, 1, 0), (5, 0, 2, 0, 2), (0, 0, 4, 0, 0), (2, 0, 2, 5, 0)],
)
def test_as_many_as_died_are_put_back_up_to_the_minimum(died, replaced, least, held, starts):
    assert exempt(died, replaced, least, held) == starts


TURNED = situation(ready=0, unready=frozenset({"r0", "r1"}), together={"chat": Together(count=2, of=3)})


@pytest.mark.parametrize(
    ("action", "rule"),
    [
        (drain("r0", reason="start_timeout"), "unready_together"),
        (drain("r0"), "unready_together"),
        (drain("r0", reason="idle"), "unready_together"),
        (drain("r0", reason="above_max"), None),
        (drain("r0", reason="evacuate"), None),
        (drain("r2"), None),
        (drain("r1", model="code"), None),
        (replace(drain("s", reason="start_timeout"), op="cancel"), None),
    ],
)
def test_no_stop_for_unreadiness_where_replicas_turned_unready_together(action, rule):
    verdict = judge([action], TURNED, BOUNDS, NOW)
    assert rules(verdict) == ([rule] if rule else [])


def unready(model: str, *seconds_ago: int) -> list[Standing]:
    return [Standing(model=model, is_ready=False, since=ago(at), ready_at=ago(5000)) for at in seconds_ago]


def ready(model: str, *seconds_ago: int, first: int | None = None) -> list[Standing]:
    return [
        Standing(model=model, is_ready=True, since=ago(at), ready_at=ago(at if first is None else first)) for at in seconds_ago
    ]


@pytest.mark.parametrize(
    ("replicas", "found"),
    [
        (unready("chat", 5), None),
        (unready("chat", 5, 5), (2, 2)),
        (unready("chat", 5, 125), (2, 2)),
        (unready("chat", 5, 126), None),
        (unready("chat", 10, 100, 200), (2, 3)),
        (unready("chat", 5, 5) + ready("chat", 900, 900), (2, 4)),
        (unready("chat", 5, 5) + ready("chat", 900, 900, 900), None),
        (unready("chat", 50, 50) + ready("chat", 9, 9, 9), (2, 2)),  # started afterwards: no witnesses
        (unready("chat", 50, 50) + ready("chat", 9, 9, 9, first=900), None),  # turned too, and have recovered
        (unready("chat", 5) + unready("code", 5), None),
    ],
)
def test_at_least_two_and_half_of_a_model_within_two_minutes_turned_together(replicas, found):
    turned = together(replicas).get("chat")
    assert (turned and (turned.count, turned.of)) == found


def test_a_pulled_brake_withholds_everything_and_counts_nothing():
    undrain = replace(drain("u"), op="undrain")
    release = Release(until=NOW + timedelta(minutes=5), stops={"chat": 1})
    verdict = judge([*drains(3), undrain, start()], situation(manual=Manual(), release=release), BOUNDS, NOW)
    assert (verdict.done, verdict.events, verdict.release) == ((), (), release)
    assert rules(verdict) == ["manual"] * 5
    assert [found.also for found in verdict.withheld] == [None, None, None, None, None]
    assert "until a person releases it" in verdict.withheld[0].why


@pytest.mark.parametrize(("seconds", "done"), [(1, 0), (0, 1), (-1, 1)])
def test_a_pulled_brake_is_off_once_its_time_has_passed(seconds, done):
    manual = Manual(until=NOW + timedelta(seconds=seconds))
    assert len(judge([start()], situation(manual=manual), BOUNDS, NOW).done) == done


def test_a_release_lets_through_exactly_what_was_withheld():
    asked = [*drains(5), *[start()] * 9]
    withheld = judge(asked, situation(), BOUNDS, NOW)
    release = release_of(withheld.withheld, NOW + timedelta(minutes=10))
    assert (release.stops, release.starts) == ({"chat": 3}, {"chat": 1})
    again = judge([*(found.action for found in withheld.withheld), drain("more")], situation(
        events=withheld.events, release=release), BOUNDS, NOW + timedelta(seconds=15))  # fmt: skip
    assert [found.action.replica for found in again.withheld] == ["more"]
    assert again.release is None
    assert all(event.is_released for event in again.events)


def test_a_release_of_unready_ones_names_the_model_and_ends_with_its_window():
    asked = drains(2, reason="start_timeout")
    release = release_of(judge(asked, TURNED, BOUNDS, NOW).withheld, NOW + timedelta(minutes=10))
    assert (release.unready, release.stops) == (frozenset({"chat"}), {"chat": 2})
    released = replace(TURNED, release=release)
    assert len(judge(asked, released, BOUNDS, NOW + timedelta(seconds=599)).done) == 2
    assert judge(asked, released, BOUNDS, NOW + timedelta(seconds=600)).done == ()


@pytest.mark.parametrize(
    ("asked", "given", "sentence"),
    [
        (
            drains(4),
            situation(ready=30),
            "More than the 3 stops that pass in 10 min (the larger of 2 and 10 % of the pool's ready replicas).",
        ),
        (
            [start()] * 9,
            situation(units={"gpu": 16}),
            "More than the 8 starts that pass in 10 min, and than 25 % of the units of gpu, which is 4.",
        ),
        (
            drains(1),
            TURNED,
            "2 of 3 replicas turned unready at about the same time: a broken probe looks like this, and they may still serve.",
        ),
        (
            drains(1),
            situation(manual=Manual(until=NOW + timedelta(hours=1))),
            "The brake is on: everything is withheld until 2026-11-30 13:00 UTC.",
        ),
    ],
)
def test_each_rule_says_its_numbers(asked, given, sentence):
    assert judge(asked, given, BOUNDS, NOW).withheld[-1].why == sentence
