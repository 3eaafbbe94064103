"""What people do to the brake: pull, release with a reason and a list that was seen; by service and by command."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command

from capacity import braking, services
from capacity.braking import Held
from capacity.briefings import brake_state
from capacity.domain.brake import Release
from capacity.domain.types import Plan
from capacity.models import Brake, LanguageModel
from capacity.recording.record import Turn
from capacity.tests.fleet import START, Fleet
from quotas.models import Pool, User

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice", is_operator=True)


def mass_drain() -> Fleet:
    """Six ready replicas, a maximum of 0, and the brake that holds after two stops."""
    fleet = Fleet(units=8, min_replicas=6)
    fleet.a_pass()
    fleet.passes(1)
    LanguageModel.objects.filter(pk=fleet.model.pk).update(min_replicas=0, max_replicas=0)
    fleet.passes(5)
    assert len(fleet.names("ready")) == 4
    return fleet


def state(fleet: Fleet) -> brake_state.BrakeState:
    return brake_state.state(Pool.objects.select_related("brake", "settings").get(pk=fleet.pool.pk), fleet.fake.now())


def release(fleet: Fleet, actor: User | None = None, reason: str = "meant", version: str | None = None) -> Brake:
    pool = Pool.objects.get(pk=fleet.pool.pk)
    seen = state(fleet).version if version is None else version
    return services.brake_release(pool, version=seen, actor=actor, reason=reason, now=fleet.fake.now())


def test_a_release_lets_through_what_was_withheld_and_no_more(alice):
    fleet = mass_drain()
    assert state(fleet).lets_through == "1 stop"
    release(fleet, alice)
    fleet.passes(3)
    assert len(fleet.names("ready")) == 3
    assert state(fleet).withheld[0]["rule"] == "stops"
    assert [row["is_released"] for row in Brake.objects.get(pool=fleet.pool).recent if row["kind"] == "stop"][-1]


def test_a_release_of_unready_ones_stops_them():
    patience = {"down_window_seconds": 30, "start_timeout_seconds": 120, "unready_grace_seconds": 30}
    fleet = Fleet(units=40, min_replicas=4, settings=patience)
    fleet.a_pass()
    fleet.passes(1)
    broken = fleet.names("ready")
    for name in broken:
        fleet.fake.hang(name)
    fleet.passes(10)
    assert set(fleet.names("unready")) == set(broken)
    release(fleet)
    fleet.passes(1)
    assert set(fleet.names("draining")) == set(broken)
    assert state(fleet).withheld == ()


def test_a_release_of_a_pulled_brake_takes_it_off_and_lets_through_what_waits(alice):
    fleet = Fleet(units=40, min_replicas=20)
    services.brake_pull(fleet.pool, until=None, actor=alice, reason="hold on", now=START)
    fleet.passes(2)
    assert state(fleet).lets_through == "20 starts"
    release(fleet, alice, "go on")
    fleet.passes(2)
    assert len(fleet.names("ready")) == 20
    assert [(row.is_on, row.actor, row.history_change_reason) for row in fleet.pool.brake.history.all()[:2]] == [
        (False, "alice", "go on"),
        (True, "alice", "hold on"),
    ]


def test_a_list_that_has_changed_since_is_not_released():
    fleet = mass_drain()
    seen = state(fleet).version
    assert state(fleet).version == seen
    services.brake_pull(fleet.pool, until=None, actor=None, reason="wait", now=fleet.fake.now())
    with pytest.raises(services.Conflict, match="has changed since you looked"):
        release(fleet, version=seen)
    assert Brake.objects.get(pool=fleet.pool).is_on


def test_a_release_ends_with_its_window():
    fleet = mass_drain()
    release(fleet)
    LanguageModel.objects.filter(pk=fleet.model.pk).update(min_replicas=4, max_replicas=4)  # nothing is asked any more
    fleet.passes(4)
    assert state(fleet).released is not None
    fleet.passes(38)
    assert state(fleet).released is None


@pytest.mark.parametrize(
    ("act", "field"),
    [
        (lambda fleet: services.brake_pull(fleet.pool, until=None, actor=None, reason=" ", now=START), "reason"),
        (lambda fleet: services.brake_pull(fleet.pool, until=START, actor=None, reason="x", now=START), "until"),
        (lambda fleet: services.brake_pull(fleet.pool, until=None, actor=None, reason="x" * 101, now=START), "__all__"),
        (lambda fleet: release(fleet), "__all__"),
        (lambda fleet: release(fleet, reason=""), "reason"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(act, field):
    fleet = Fleet()
    before = Brake.objects.filter(pool=fleet.pool).values().get()
    with pytest.raises(ValidationError) as refused:
        act(fleet)
    assert field in refused.value.message_dict
    assert Brake.objects.filter(pool=fleet.pool).values().get() == before


def test_a_pass_writes_over_no_release_that_came_meanwhile():
    fleet = mass_drain()
    lease, now = fleet.lease, fleet.fake.now()
    turn = Turn(installation="here", lease=lease, holder="w", generation=1, now=now, unbroken_since=now, started=0)
    used = Release(until=now + HOUR, stops={"other": 1})
    held = Held(
        plan=Plan(at=now, actions=(), decisions=(), problems=()),
        withheld=(),
        rows=[],
        news=frozenset(),
        events=(),
        release=used,
        is_on=False,
    )
    release(fleet)
    braking.write(turn, held)
    assert Brake.objects.get(pool=fleet.pool).released["stops"] == {"chat": 1}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30m", 1800), ("2h", 7200), ("1d", 86400), ("45 s", 45), ("2026-11-30T13:00Z", 3600), ("2026-11-30 13:00", 3600)],
)
def test_an_end_is_a_span_or_an_instant(text, seconds):
    assert brake_state.parse_until(text, START) == START + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    ["soon", "-5m", "5", "m", "1.5h", "2026-13-40T00:00Z", "٣m", "99999999d", "30m30", "9999-12-31T23:59-14:00", "m" * 5000],
)
def test_an_end_that_is_none_is_refused_with_a_sentence(text):
    with pytest.raises(ValueError, match=r"is no time: write 30m"):
        brake_state.parse_until(text, START)


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("brake", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_pulls_shows_and_releases(time_machine):
    time_machine.move_to(START, tick=False)
    fleet = Fleet(units=40, min_replicas=3)
    assert "p: the brake is on until it is released, pulled by the command line: maintenance" in run("--reason", "maintenance")
    fleet.a_pass()
    shown = run("--show")
    assert "Withheld: 3 starts." in shown
    assert "small on n1" in shown
    version = json.loads(run("--show", "--json"))["version"]
    with pytest.raises(CommandError, match=f"Nothing was released.*--seen {version}"):
        run("--release", "--reason", "done")
    assert "the brake is off" in run("--release", "--seen", version, "--reason", "done")
    fleet.passes(2)
    assert len(fleet.names("ready")) == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--pool", "nowhere", "--show"], "There is no pool “nowhere”."),
        ([], "Say why"),
        (["--until", "soon", "--reason", "x"], "is no time"),
        (["--release", "--show"], "not both"),
        (["--release", "--seen", "x", "--until", "1h", "--reason", "x"], "no end of its own"),
        (["--release"], "nothing to release"),
        (["--release", "--seen", "old", "--reason", "x"], "has changed since you looked"),
    ],
)
def test_the_command_refuses_with_one_sentence(arguments, sentence):
    Fleet()
    with pytest.raises(CommandError, match=sentence):
        run(*arguments)
    assert not Brake.objects.get().is_on


def test_a_brake_that_is_on_keeps_its_end_and_reason_until_it_was_looked_at(alice):
    fleet = Fleet()
    services.brake_pull(fleet.pool, until=None, actor=alice, reason="network work", now=START)
    with pytest.raises(services.Conflict, match=r"on already, until it is released, pulled by alice: network work\."):
        services.brake_pull(fleet.pool, until=START + HOUR, actor=None, reason="mine", now=START)
    version = state(fleet).version
    with pytest.raises(CommandError, match=f"pulled by alice: network work.*--seen {version}"):
        run("--reason", "mine")
    assert Brake.objects.get().reason == "network work"
    assert "pulled by the command line: ours" in run("--reason", "ours", "--seen", version)


def test_a_brake_whose_time_has_passed_is_pulled_without_a_look():
    fleet = Fleet()
    services.brake_pull(fleet.pool, until=START + HOUR, actor=None, reason="short", now=START)
    services.brake_pull(fleet.pool, until=None, actor=None, reason="again", now=START + 2 * HOUR)
    assert Brake.objects.get().reason == "again"


def test_what_the_last_pass_withheld_does_not_contradict_what_was_done_since(time_machine):
    fleet = Fleet(units=40, min_replicas=3)
    services.brake_pull(fleet.pool, until=None, actor=None, reason="work", now=START)
    fleet.a_pass()
    time_machine.move_to(fleet.fake.now() + timedelta(seconds=1), tick=False)
    assert "withheld until a person releases it." in run("--show")
    run("--until", "1h", "--reason", "shorter", "--seen", state(fleet).version)
    shown = run("--show")
    assert "until a person releases it" not in shown
    assert "everything is withheld until " in shown
    run("--release", "--seen", state(fleet).version, "--reason", "done")
    shown = run("--show")
    assert "The brake is on" not in shown
    assert "The last pass, at " in shown
    assert "The brake was on in the last pass" in shown
