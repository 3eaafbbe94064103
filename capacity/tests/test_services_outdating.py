"""What an edit of a profile, a model or an SLO makes outdated: said before, done with the save, and undone when it moves back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from capacity import services
from capacity.fingerprints import measuring_print, present_print, run_print, slo_text
from capacity.models import LanguageModel, Measurement, Profile, Replica, Slo
from capacity.services.outdating import outdating
from capacity.tests.factories import make_measurement, make_model, make_profile

pytestmark = pytest.mark.django_db
STAGES = {"stages": [{"concurrency": 10}]}


@pytest.fixture
def profile() -> Profile:
    slo = Slo.objects.create(name="fast", ttft_percentile=95, ttft_ms=500)
    model = make_model("chat", slo=slo, input_tokens=512)
    found = make_profile(model, "small", engine="vllm", engine_version="0.10", parameters={"tp": "1"})
    make_measurement(found, fingerprint=present_print(found), evidence=STAGES)
    Replica.objects.create(name="chat-1", pool=model.pool, model=model, profile=found, fingerprint=run_print(found, "chat"))
    return found


def measurement() -> Measurement:
    return Measurement.objects.get()


def saved(row: Any, **fields: Any) -> list[str]:
    for name, value in fields.items():
        setattr(row, name, value)
    return services.save(row, actor=None, reason="an upgrade")


BOTH = (
    "This makes 1 measurement outdated: nothing is taken back on it until it is measured again; "
    "1 replica runs the old one and is replaced one at a time."
)
MEASUREMENT = "This makes 1 measurement outdated: nothing is taken back on it until it is measured again."


@pytest.mark.parametrize(
    ("of", "field", "new", "words", "sentence"),
    [
        (lambda p: p, "engine_version", "0.11", "engine version 0.10 → 0.11", BOTH),
        (lambda p: p, "parameters", {"tp": "2", "x": "y"}, "tp 1 → 2; x none → y", BOTH),
        (lambda p: p, "template", "vllm-2", "template none → vllm-2", BOTH),
        (lambda p: p.model, "output_tokens", 128, "output tokens none → 128", MEASUREMENT),
        (lambda p: p.model, "slo", None, "SLO ttft p95 ≤ 500 ms, errors ≤ 1 % → none", MEASUREMENT),
        (
            lambda p: p.model.slo, "ttft_ms", 400,
            "SLO ttft p95 ≤ 500 ms, errors ≤ 1 % → ttft p95 ≤ 400 ms, errors ≤ 1 %", MEASUREMENT,
        ),
    ],
)  # fmt: skip
def test_an_edit_that_moves_the_fingerprint_says_so_and_makes_its_measurements_outdated_until_it_moves_back(
    profile: Profile, of: Callable[[Profile], Any], field: str, new: Any, words: str, sentence: str
) -> None:
    row = of(profile)
    before = getattr(row, field)
    setattr(row, field, new)
    assert outdating(row).sentence == sentence
    assert measurement().status == "current"
    assert sentence in saved(row)
    found = measurement()
    assert (found.status, found.stale_cause, found.stale_why) == ("stale", "fingerprint", f"The profile has changed: {words}.")
    assert found.history.first().history_change_reason == "an upgrade"
    saved(row, **{field: before})
    assert (measurement().status, measurement().stale_cause, measurement().stale_why) == ("current", "", "")


@pytest.mark.parametrize(
    "fields", [{"priority": 3}, {"state": "no_new"}, {"selector": {"zone": "a"}}, {"replacing_paused": True}]
)
def test_other_edits_make_nothing_outdated(profile: Profile, fields: dict[str, Any]) -> None:
    assert not any("outdated" in warning for warning in saved(profile, **fields))
    assert measurement().status == "current"


def test_what_is_outdated_by_its_latencies_does_not_come_back_with_the_profile(profile: Profile) -> None:
    Measurement.objects.update(status="stale", stale_cause="self_check")
    saved(profile, engine_version="0.11")
    saved(profile, engine_version="0.10")
    assert measurement().status == "stale"


def test_a_measurement_of_which_nobody_knows_what_was_measured_is_left_alone(profile: Profile) -> None:
    Measurement.objects.update(fingerprint="")
    saved(profile, engine_version="0.11")
    assert measurement().status == "current"


def test_replicas_of_a_profile_whose_replacing_is_paused_stay(profile: Profile) -> None:
    profile.replacing_paused, profile.engine_version = True, "0.11"
    assert outdating(profile).sentence.endswith("1 replica runs the old one and is not replaced while replacing is paused.")


def test_an_accepted_measurement_stands_for_the_profile_as_it_is_now(profile: Profile) -> None:
    saved(profile, engine_version="0.11")
    found = measurement()
    saved(found, status="current")
    assert (measurement().fingerprint, measurement().stale_cause) == (present_print(Profile.objects.get()), "")
    saved(Profile.objects.get(), priority=2)
    assert measurement().status == "current"


def test_a_sweep_that_comes_in_is_of_the_profile_as_it_is(profile: Profile) -> None:
    new = Measurement(profile=profile, max_concurrency=8, tokens_per_second=80, status="current", evidence=STAGES)
    saved(new)
    assert new.fingerprint == present_print(profile)


def test_deleting_an_slo_makes_outdated_what_was_measured_for_it(profile: Profile) -> None:
    services.delete(Slo.objects.get(), actor=None, reason="")
    assert measurement().stale_why.endswith("→ none.")


def test_a_measurement_for_another_slo_than_the_models_is_not_in_force(profile: Profile) -> None:
    slow = Slo.objects.create(name="slow", tpot_percentile=90, tpot_ms=80)
    assert slo_text(slow) == "tpot p90 ≤ 80 ms, errors ≤ 1 %"
    assert measuring_print(profile, slow) != present_print(profile)
    Measurement.objects.update(fingerprint=measuring_print(profile, slow), status="stale", stale_cause="fingerprint")
    saved(LanguageModel.objects.get(), slo=slow)
    assert measurement().status == "current"
