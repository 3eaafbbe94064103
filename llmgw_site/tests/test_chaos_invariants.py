"""What a chaos run watches for can be seen: each rule is broken here, and found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from llmgw_site.tests.chaos.invariants import FORGOTTEN_SECONDS, Watch, unsteady
from llmgw_site.tests.chaos.observation import Bound, Decided, Engine, Host, Observation, Row

LOST = 40.0
UNITS = {"chat": 1, "code": 2}
HOSTS = {name: Host(name=name, offers=4, silent_seconds=1) for name in ("h1", "h2")}
MAX = Bound(name="max_replicas of chat", models=frozenset({"chat"}), counts="replicas", most=2)
LIMIT = Bound(name="limit of team", models=frozenset({"chat", "code"}), counts="units", most=4, late_seconds=35)


def engine(replica: str | None, pid: int = 1, host: str = "h1", model: str = "chat") -> Engine:
    return Engine(pid=pid, host=host, model=model, replica=replica)


def row(name: str, host: str = "h1", model: str = "chat", state: str = "ready", intent: str = "", at: float = 100) -> Row:
    return Row(name=name, model=model, host=host, state=state, created_at=at, intent=intent)


def start(name: str, model: str = "chat", at: float = 100, host: str = "h1") -> Row:
    return row(name, host, model, "starting", "start", at)


def seen(at: float = 100, *, rows: Sequence[Row] = (), engines: Sequence[Engine] = (), **more: object) -> Observation:
    values = {"at": at, "rows": tuple(rows), "engines": tuple(engines), "hosts": HOSTS, "units": UNITS, "bounds": (MAX, LIMIT)}
    return Observation(**{**values, **more})  # type: ignore[arg-type]


def watched(*observations: Observation) -> list[str]:
    watch = Watch(LOST)
    return [sentence for observation in observations for sentence in watch.see(observation)]


def test_a_sound_fleet_breaks_nothing():
    rows, engines = [row("a"), row("b", "h2")], [engine("a", 1), engine("b", 2, "h2")]
    assert watched(seen(100), seen(101, rows=rows, engines=engines), seen(102, rows=rows, engines=engines)) == []


@pytest.mark.parametrize("other", ["h1", "h2"])
def test_a_replica_that_runs_twice_is_seen_on_one_host_and_on_two(other):
    (sentence,) = watched(seen(rows=[row("a")], engines=[engine("a", 1), engine("a", 2, other)]))
    assert sentence.startswith("a runs 2 times")


def test_what_stays_wrong_is_said_once():
    twice = [engine("a", 1), engine("a", 2)]
    assert len(watched(seen(100, engines=twice), seen(101, engines=twice))) == 1


def test_a_process_on_no_record_is_seen():
    (sentence,) = watched(seen(engines=[engine(None, 77)]))
    assert "pid 77" in sentence and "no record" in sentence


def test_a_host_that_runs_more_than_it_offers_is_seen_whoever_counts_it():
    three_of_two = [engine(name, pid, model="code") for pid, name in enumerate("abc")]
    (sentence,) = watched(seen(engines=three_of_two, bounds=()))
    assert sentence.startswith("h1 runs 6 units and offers 4")


@pytest.mark.parametrize(("generations", "late"), [((1, 2, 3), 0), ((1, 2, 2), 1), ((1, 3, 2), 1)])
def test_a_writer_that_comes_too_late_is_seen(generations, late):
    assert len(watched(seen(generations=generations))) == late


def test_a_start_past_the_maximum_is_seen_on_record():
    before = [row("a"), row("b")]
    (sentence,) = watched(seen(100, rows=before), seen(101, rows=[*before, start("c", at=101)]))
    assert sentence.startswith("max_replicas of chat: 3 replicas (replicas on record) when c came, and at most 2 were allowed")


def test_a_process_past_the_maximum_is_seen_even_where_the_record_says_otherwise():
    two, three = [engine("a", 1), engine("b", 2)], [engine("a", 1), engine("b", 2), engine("c", 3)]
    (sentence,) = watched(seen(100, engines=two), seen(101, engines=three))
    assert sentence.startswith("max_replicas of chat: 3 replicas (processes) when c came")


def test_a_start_past_a_limit_counts_units_of_all_its_models():
    before = [row("a"), row("b", model="code")]
    (sentence,) = watched(seen(100, rows=before), seen(101, rows=[*before, start("c", "code", 101)]))
    assert sentence.startswith("limit of team: 5 units (replicas on record) when c came, and at most 4 were allowed")


def test_what_runs_when_a_bound_is_lowered_may_run_on_and_nothing_may_come():
    lower = (Bound(name=MAX.name, models=MAX.models, counts="replicas", most=1),)
    before, after = [row("a"), row("b")], [row("a"), row("b"), start("c", at=110)]
    assert watched(seen(100, rows=before), seen(101, rows=before, bounds=lower)) == []
    assert len(watched(seen(100, rows=before), seen(105, rows=before, bounds=lower), seen(111, rows=after, bounds=lower))) == 1


def test_a_start_that_was_decided_before_the_edit_is_judged_by_the_bound_of_then():
    lower = (Bound(name=MAX.name, models=MAX.models, counts="replicas", most=1),)
    assert watched(seen(100, rows=[row("a")]), seen(101, rows=[row("a"), start("b", at=100.5)], bounds=lower)) == []


def test_a_limit_may_be_known_late_and_no_later_than_that():
    lower = (Bound(name=LIMIT.name, models=LIMIT.models, counts="units", most=1, late_seconds=35),)

    def after(seconds: float) -> list[str]:
        new = seen(100 + seconds, rows=[row("a"), start("b", at=100 + seconds)], bounds=lower)
        return watched(seen(100, rows=[row("a")]), seen(101, rows=[row("a")], bounds=lower), new)

    assert after(20) == []
    assert len(after(50)) == 1


def test_what_is_on_a_lost_host_counts_for_nothing():
    away = {**HOSTS, "h1": Host(name="h1", offers=4, silent_seconds=LOST)}
    before = [row("a"), row("b")]
    follower = [*before, start("c", at=101, host="h2")]
    assert watched(seen(100, rows=before, hosts=away), seen(101, rows=follower, hosts=away)) == []
    silent = {**HOSTS, "h1": Host(name="h1", offers=4, silent_seconds=LOST / 2)}
    assert len(watched(seen(100, rows=before, hosts=silent), seen(101, rows=follower, hosts=silent))) == 1


def test_a_process_that_nobody_counts_is_seen_after_a_while_and_only_where_its_host_reports():
    engines = [engine("a", 1)]
    times = (100, 101, 101 + FORGOTTEN_SECONDS)
    (sentence,) = watched(*(seen(at, engines=engines) for at in times))
    assert sentence.startswith("a runs on h1 and nobody counts it")
    silent = {**HOSTS, "h1": Host(name="h1", offers=4, silent_seconds=20)}
    assert watched(*(seen(at, engines=engines, hosts=silent) for at in times)) == []
    assert watched(*(seen(at, engines=engines, rows=[row("a")] if at == 101 else []) for at in times)) == []


REST = {
    "rows": [row("a")],
    "engines": [engine("a")],
    "decided": {"chat": Decided(outcome="hold", reason="at_min", at_least=1)},
}


def test_a_fleet_at_rest_is_steady():
    assert unsteady(seen(**REST)) == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rows": [row("a", state="starting")]}, "a is starting"),
        ({"rows": [row("a", intent="drain")]}, "a is drain"),
        ({"rows": [row("a"), row("b")]}, "b is on record and does not run"),
        ({"engines": [engine("a"), engine("b", 2)]}, "b runs and is not on record"),
        ({"engines": [engine("a"), engine("a", 2)]}, "a runs and is not on record"),
        ({"engines": []}, "a is on record and does not run"),
        ({"decided": {"chat": Decided(outcome="remove", reason="above_max", at_least=1)}}, "chat: remove, above_max"),
        ({"decided": {"chat": Decided(outcome="hold", reason="no_room", at_least=2)}}, "chat has 1 replicas and wants 2"),
        ({"hosts": {**HOSTS, "h2": Host(name="h2", offers=4, silent_seconds=None)}}, "h2 is silent"),
        (
            {"bounds": (Bound(name="limit", models=frozenset({"chat"}), counts="units", most=0),)},
            "limit: 1 units, and at most 0 are allowed",
        ),
    ],
)
def test_whatever_is_not_at_rest_is_named(change, why):
    assert unsteady(seen(**REST | change)) == [why]
