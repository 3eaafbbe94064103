"""From advise to auto: what is shown before a switch, when a reason is asked for, and by which ways one may switch."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from capacity.briefings import mode_facts
from capacity.briefings.scorecards import recorded
from capacity.models import LanguageModel, Rollup
from capacity.rollup import bucket_of, roll
from capacity.services import model_mode, save
from capacity.services.modes import doubts
from capacity.tests.factories import make_measurement, make_model, make_profile
from capacity.tests.fleet import Fleet
from capacity.tests.pages import make_sample
from capacity.tests.rollups import remember
from quotas.models import User

pytestmark = pytest.mark.django_db

STAGES = {"stages": [{"concurrency": 10}]}


@pytest.fixture
def alice():
    return User.objects.create(username="alice", is_operator=True)


def known_well(model):
    """A week on record and a located measurement."""
    sample = make_sample(model, timezone.now(), [], 10)
    rolled = {**roll([sample]), "samples": 20}
    now = bucket_of(timezone.now())
    Rollup.objects.bulk_create(Rollup(model=model, at=now - timedelta(minutes=5 * n), **rolled) for n in range(1, 7 * 288 + 1))
    make_measurement(make_profile(model), evidence=STAGES, kind="located")


# --- when a reason is asked for -----------------------------------------------------------------------------------
def test_a_model_of_which_little_is_known_acts_only_with_a_reason(alice):
    model = make_model(mode="advise")
    with pytest.raises(ValidationError) as refused:
        model_mode(model, "add_only", actor=alice, reason="")
    assert "recorded for 0.0 of the last 14 days, fewer than 7" in refused.value.message_dict["mode"][0]
    assert "measurement whose limit was located" in refused.value.message_dict["mode"][0]
    assert LanguageModel.objects.get().mode == "advise"
    model_mode(model, "add_only", actor=alice, reason="it is only a trial")
    assert LanguageModel.objects.get().history.first().history_change_reason == "it is only a trial"


def test_a_model_that_is_known_well_is_switched_without_one(alice):
    model = make_model(mode="advise")
    known_well(model)
    assert doubts(model, timezone.now()) == []
    model_mode(model, "auto", actor=alice, reason="")
    assert LanguageModel.objects.get().mode == "auto"


@pytest.mark.parametrize(
    ("before", "after", "asks"),
    [
        ("advise", "add_only", True),
        ("advise", "auto", True),
        ("add_only", "auto", True),
        ("paused", "auto", True),
        ("auto", "add_only", False),
        ("auto", "advise", False),
        ("auto", "paused", False),
        ("paused", "advise", False),
        ("advise", "paused", False),
    ],
)
def test_only_more_freedom_asks_for_a_reason(alice, before, after, asks):
    model = make_model(mode=before)
    if asks:
        with pytest.raises(ValidationError):
            model_mode(model, after, actor=alice, reason="")
    else:
        model_mode(model, after, actor=alice, reason="")
    assert LanguageModel.objects.get().mode == (before if asks else after)


def test_other_edits_of_a_model_that_acts_ask_for_none(alice):
    model = make_model(mode="auto")
    model.priority = 3
    save(model, actor=alice)
    assert LanguageModel.objects.get().priority == 3


def test_what_the_product_itself_sets_up_needs_no_reason():
    model = make_model(mode="advise")
    model_mode(model, "auto", actor=None, reason="")
    assert LanguageModel.objects.get().mode == "auto"


@pytest.mark.parametrize(
    ("status", "kind", "located"),
    [
        ("current", "located", True),
        ("current", "at_least", False),
        ("current", "", False),
        ("stale", "located", False),
        ("assumed", "located", False),
    ],
)
def test_only_a_current_measurement_whose_limit_was_located_counts(status, kind, located):
    model = make_model(mode="advise")
    make_measurement(make_profile(model), status=status, kind=kind, evidence=STAGES)
    assert any("located" in doubt for doubt in doubts(model, timezone.now())) is not located


def test_the_measurement_of_a_retired_profile_does_not_count():
    model = make_model(mode="advise")
    make_measurement(make_profile(model, state="retire"), evidence=STAGES, kind="located")
    assert any("located" in doubt for doubt in doubts(model, timezone.now()))


def test_a_stretch_whose_load_was_never_known_is_not_covered():
    model = make_model()
    remember(model, [3, 3])
    row = Rollup.objects.order_by("at").first()
    row.totals["demand_high"] = None
    row.save()
    assert recorded(model, timezone.now()) == timedelta(minutes=5)


# --- the next pass in another mode --------------------------------------------------------------------------------
def preview_of(fleet, mode):
    lease, now = fleet.lease, fleet.fake.now()
    built, current = mode_facts.advise(fleet.deps, lease, now)
    held = mode_facts.hold(lease, built, mode_facts.in_mode(built, "chat", mode), now)
    return mode_facts.preview(held, current, "chat", mode)


@pytest.mark.parametrize(("mode", "starts", "advised"), [("auto", 2, 0), ("add_only", 2, 0), ("advise", 0, 2), ("paused", 0, 0)])
def test_the_preview_says_in_numbers_what_would_be_done(mode, starts, advised):
    fleet = Fleet(min_replicas=2, mode="advise")
    found = preview_of(fleet, mode)
    assert (found.starts, found.stops, found.advised) == (starts, 0, advised)
    assert LanguageModel.objects.get().mode == "advise"


def test_what_the_brake_would_withhold_is_counted_by_itself():
    found = preview_of(Fleet(units=40, min_replicas=13, mode="advise"), "auto")
    assert (found.starts, len(found.withheld)) == (10, 3)
    assert "The brake withholds 3 actions" in found.decision.why


def test_a_removal_is_done_in_auto_and_advice_in_add_only():
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    fleet.passes(1)
    fleet.share(21)
    fleet.passes(2)
    LanguageModel.objects.update(mode="advise")
    fleet.share(0)
    fleet.passes(4)
    assert [(preview_of(fleet, mode).stops, preview_of(fleet, mode).advised) for mode in ("auto", "add_only")] == [(1, 0), (0, 1)]
