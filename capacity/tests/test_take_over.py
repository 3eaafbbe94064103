"""Restore, copy, second installation: nothing is acted on until a person takes the pool over, and then all goes on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from capacity import services
from capacity.domain.installations import Claim, HostFence, seen_beyond, take_over_needed
from capacity.models import Action, Backoff, LanguageModel, Lease, Pass, Replica
from capacity.tests.fleet import INSTALLATION, Fleet
from capacity.tests.pages import make_action
from quotas.models import User


def claim(**changes):
    return Claim(**{"pool": "p", "ours": "here", "written": "here", "generation": 10, **changes})


def host(installation="here", generation=10, node="n1"):
    return HostFence(node=node, installation=installation, generation=generation)


@pytest.mark.parametrize(
    ("claimed", "hosts", "codes"),
    [
        (claim(), [], []),
        (claim(written=""), [], []),
        (claim(), [host(), host("", 0, "n2")], []),
        (claim(), [host(generation=11)], ["older_backup"]),
        (claim(), [host("", 11)], ["older_backup"]),
        (claim(seen_generation=9), [], ["older_backup"]),
        (claim(written="there"), [], ["copied_database"]),
        (claim(), [host("there", 3)], ["another_installation"]),
        (claim(written=""), [host("there", 3)], ["another_installation"]),
        (claim(taken_over_at_generation=4), [host("there", 3)], []),
        (claim(taken_over_at_generation=4), [host("there", 4)], ["another_installation"]),
        (claim(written="there"), [host("there", 12)], ["copied_database", "another_installation"]),
        (claim(), [host("a", 1, "n1"), host("b", 1, "n2")], ["another_installation"] * 2),
    ],
)
def test_what_keeps_a_pool_to_advice(claimed, hosts, codes):
    assert [found.code for found in take_over_needed(claimed, hosts)] == codes


def test_one_host_is_named_as_the_subject_and_several_in_the_sentence():
    [one] = take_over_needed(claim(), [host("there", node="n7")])
    [many] = take_over_needed(claim(), [host("there", node=f"n{number}") for number in range(6)])
    assert one.subject == "node:n7"
    assert many.subject == "pool:p"
    assert "n0, n1, n2, n3 and 2 more obey installation there" in many.detail


FENCES = st.lists(
    st.builds(host, st.sampled_from(["", "here", "there"]), st.integers(0, 40), st.sampled_from(["n1", "n2", "n3"])), max_size=4
)


@given(FENCES, st.integers(0, 40), st.sampled_from(["", "here", "there"]))
def test_a_generation_past_all_that_hosts_have_seen_ends_every_reason_to_wait(hosts, generation, written):
    before = claim(generation=generation, written=written)
    taken = 1 + max([generation, *(found.generation for found in hosts)])
    after = claim(generation=taken, written="here", taken_over_at_generation=taken)
    assert take_over_needed(after, hosts) == ()
    assert seen_beyond(after, hosts) == 0
    assert bool(take_over_needed(before, hosts)) == (
        written == "there" or any(found.installation == "there" or found.generation > generation for found in hosts)
    )


pytestmark = pytest.mark.django_db


def problems() -> list[str]:
    return [row["code"] for row in Pass.objects.order_by("-id")[0].problems if row["code"] != "no_owner"]


def put_back(fleet: Fleet, generation: int, replicas: list[str]) -> None:
    """The database as it was at that generation, when these were all that ran."""
    Lease.objects.update(generation=generation, last_pass_at=fleet.fake.now() - timedelta(hours=1))
    Action.objects.all().delete()
    Replica.objects.exclude(name__in=replicas).delete()


def take(fleet: Fleet, reason: str = "put back", **changes):
    values = {"installation": INSTALLATION, "actor": None, "reason": reason, "now": fleet.fake.now(), **changes}
    return services.take_over(fleet.lease, fleet.fake, **values)


@pytest.fixture
def fleet():
    made = Fleet(min_replicas=2, max_replicas=6)
    made.a_pass()
    made.passes(1)
    return made


def test_the_first_pass_claims_a_pool_and_hosts_remember_it(fleet):
    assert fleet.lease.installation == INSTALLATION
    [report] = fleet.fake.observe("p")
    assert (report.installation, report.generation) == (INSTALLATION, 1)
    assert problems() == []


@pytest.fixture
def restored(fleet):
    """A backup of two replicas put back, when four run; an order of it was never seen done."""
    before = fleet.names("ready")
    generation = fleet.lease.generation
    fleet.passes(20)
    LanguageModel.objects.update(min_replicas=4)
    fleet.passes(2)
    put_back(fleet, generation, before)
    LanguageModel.objects.update(min_replicas=1)
    Replica.objects.filter(name=before[0]).update(intent="drain", state="draining", intent_at=fleet.fake.now())
    decision = LanguageModel.objects.get().last_decision
    make_action(decision, Replica.objects.get(name=before[0]), state="sent")
    Replica.objects.create(
        name="never", pool=fleet.pool, model=fleet.model, profile=fleet.profile, nodes=["n1"], intent="start",
        intent_at=fleet.fake.now() - timedelta(hours=1), since=fleet.fake.now() - timedelta(hours=1),
    )  # fmt: skip
    return fleet


def test_an_older_backup_acts_on_nothing_however_many_passes_go_by(restored):
    running = restored.names("ready")
    assert len(running) == 4
    reports = restored.passes(60)
    assert {report.sent for report in reports} == {0}
    assert restored.names("ready") == running, "nothing was killed or started"
    assert restored.lease.generation > 40, "passes have counted past what the hosts had seen"
    assert problems() == ["older_backup"]
    assert set(Action.objects.exclude(op="drain", replica_name=running[0]).values_list("state", flat=True)) <= {"advice", "sent"}


def test_what_was_started_since_the_backup_is_adopted_and_seen_as_it_is(restored):
    restored.passes(1)
    present = Replica.objects.filter(gone_at__isnull=True)
    assert sorted(present.values_list("name", flat=True)) == restored.names("ready")
    assert set(present.values_list("state", flat=True)) == {"ready"}
    assert Replica.objects.get(name="never").gone_at is not None
    assert not Backoff.objects.exists(), "what an older state asked for says nothing of what fails now"


def test_after_a_take_over_models_act_in_their_own_modes_from_the_next_pass(restored):
    restored.passes(3)
    done = take(restored)
    assert (done.running, done.adopted, done.modes) == (4, 0, {"auto": 1})
    assert Action.objects.filter(op="drain", state="dropped", message__contains="taken over").count() == 1
    LanguageModel.objects.update(min_replicas=5)
    assert restored.passes(2)[0].sent == 1
    assert len(restored.names("ready")) == 5
    assert problems() == []
    assert restored.lease.take_over_needed == ""


def test_a_take_over_before_any_pass_drops_what_was_asked_for(restored):
    done = take(restored)
    assert (done.adopted, done.missing, done.actions, done.intents) == (2, 1, 1, 2)
    assert not Replica.objects.exclude(intent="").exists()
    assert Replica.objects.get(name="never").state == "gone"
    running = restored.names("ready")
    restored.passes(1)
    assert restored.names("ready", "draining") == running


def test_a_take_over_is_written_to_the_history_with_who_and_why(restored):
    alice = User.objects.create(username="alice")
    done = take(restored, "backup of 02:00", actor=alice)
    entry = restored.lease.history.first()
    assert (entry.history_user, entry.history_change_reason) == (alice, "backup of 02:00")
    assert (entry.installation, entry.taken_over_at_generation) == (INSTALLATION, done.generation)


def test_a_copy_only_advises_and_the_first_goes_on(fleet):
    """One database stands for both: what the copy does to its own rows is that it writes its passes."""
    copy = fleet.make_deps(installation="there", holder="worker-9")
    running = fleet.names("ready")
    LanguageModel.objects.update(min_replicas=3)
    for _ in range(3):
        fleet.fake.advance(15)
        assert fleet.a_pass(copy).sent == 0
        assert set(problems()) == {"copied_database", "another_installation"}
    assert fleet.lease.installation == INSTALLATION
    assert fleet.names("starting", "ready") == running
    assert fleet.passes(1)[0].sent == 1


def test_hosts_refuse_the_first_from_the_take_over_on_before_any_order(fleet):
    done = take(fleet, installation="there")
    [report] = fleet.fake.observe("p")
    assert (report.installation, report.generation) == ("there", done.generation)
    assert len(fleet.names("ready")) == 2, "the order that tells them changes nothing"
    assert not [found for found in report.replicas if found.name.startswith("take-over")]
    LanguageModel.objects.update(min_replicas=3)
    fleet.fake.advance(15)
    assert fleet.a_pass().sent == 0, "the first"
    assert "another_installation" in problems()


def test_once_a_copy_has_taken_over_the_first_is_refused_and_only_advises(fleet):
    copy = fleet.make_deps(installation="there", holder="worker-9")
    take(fleet, installation="there")
    LanguageModel.objects.update(min_replicas=3)
    fleet.fake.advance(15)
    assert fleet.a_pass(copy).sent == 1
    [report] = fleet.fake.observe("p")
    assert report.installation == "there"
    fleet.fake.advance(15)
    assert fleet.a_pass().sent == 0
    assert set(problems()) == {"copied_database", "another_installation"}


def test_paused_models_stay_paused_while_the_pool_waits(restored):
    LanguageModel.objects.update(mode="paused")
    restored.passes(1)
    assert LanguageModel.objects.get().last_decision.reason == "paused"


def test_a_pool_that_is_ours_is_not_taken_over_nor_one_whose_hosts_cannot_be_asked(fleet):
    with pytest.raises(ValidationError, match="needs no take-over"):
        take(fleet)
    Lease.objects.update(installation="there")
    with pytest.raises(ValidationError, match="cannot be read"):
        fleet.fake.away = True
        take(fleet, "x")
    fleet.fake.away = False
    with pytest.raises(ValidationError, match="Say why"):
        take(fleet, " ")
    assert fleet.lease.installation == "there"


def test_a_pass_that_was_under_way_at_a_take_over_writes_nothing(restored, monkeypatch):
    from capacity import reconcile

    build = reconcile.build

    def meanwhile(*given):
        built = build(*given)
        take(restored)
        return built

    monkeypatch.setattr(reconcile, "build", meanwhile)
    assert restored.passes(1)[0].outcome == "lease_lost"
