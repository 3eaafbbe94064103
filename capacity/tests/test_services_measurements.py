"""Storing a judged sweep: what is written, what is refused, what contradicts the profile; accepting an outdated one."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from capacity.domain.measurement.judge import judge
from capacity.domain.measurement.types import Setting, Stage, Sweep
from capacity.models import Measurement, Profile, Slo
from capacity.services import Origin, measurement_accept, measurement_store, save
from capacity.tests.factories import make_measurement, make_model, make_profile
from capacity.tests.sweeps import SLO, judged, make_stage

pytestmark = pytest.mark.django_db
FILE = {"name": "sweep.json", "sha256": "a" * 64}


def store(profile: Profile, judgement: Any = None, **options: Any) -> tuple[Measurement, list[str]]:
    given = {"slo": SLO, "actor": None, "reason": "measured at night", **options}
    return measurement_store(profile, judgement or judged(), **given)


def unmeasurable() -> Any:
    """One stage without any latency."""
    stage = Stage(where="a run", asked=8, mean_in_flight=8.0, requests=100, errors=0, seconds=60.0, tokens_per_second=400.0)
    return judge(Sweep(setting=Setting(tool="made"), stages=(stage,)), SLO)


def test_a_sweep_is_stored_with_its_numbers_its_kind_and_its_evidence() -> None:
    slo = Slo.objects.create(name="fast", ttft_percentile=95, ttft_ms=500)
    stored, warnings = store(make_profile(), origin=Origin(files=[FILE]))
    stored.refresh_from_db()
    assert (stored.max_concurrency, stored.tokens_per_second, stored.kind, stored.status) == (2, 190, "located", "current")
    assert (stored.slo, warnings, len(stored.fingerprint)) == (slo, [], 64)
    assert stored.evidence["files"] == [FILE]
    assert [stage["concurrency"] for stage in stored.evidence["stages"]] == [0.98, 1.98, 3.98]
    assert stored.history.get().history_change_reason == "measured at night"


def test_the_same_sweep_twice_on_one_profile_is_one_measurement() -> None:
    profile = make_profile()
    first, _ = store(profile)
    again, warnings = store(profile, origin=Origin(files=[FILE]))
    assert (again, Measurement.objects.count()) == (first, 1)
    assert warnings == [f"This sweep is measurement {first.pk} of {profile} already: nothing is stored."]


def test_the_same_sweep_on_another_profile_is_another_measurement() -> None:
    store(make_profile())
    store(make_profile())
    assert Measurement.objects.count() == 2


def test_without_a_reason_nothing_is_stored() -> None:
    with pytest.raises(ValidationError) as refused:
        store(make_profile(), reason=" ")
    assert (list(refused.value.message_dict), Measurement.objects.count()) == (["reason"], 0)


def test_a_sweep_that_gives_no_measurement_is_refused_unless_a_person_states_the_concurrency() -> None:
    with pytest.raises(ValidationError, match="State the concurrency"):
        store(make_profile(), unmeasurable())
    stored, _ = store(make_profile(), unmeasurable(), concurrency=8)
    assert (stored.max_concurrency, stored.tokens_per_second, stored.kind) == (8, 400, "not_binding")


@pytest.mark.parametrize(("concurrency", "said"), [(5, "it has 8"), (0, "at least 1")])
def test_a_stated_concurrency_that_was_not_measured_is_refused(concurrency: int, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        store(make_profile(), unmeasurable(), concurrency=concurrency)


def test_a_concurrency_beside_what_the_sweep_says_is_refused() -> None:
    with pytest.raises(ValidationError, match="leave the concurrency out"):
        store(make_profile(), concurrency=2)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"engine_version": "0.9"}, "version 0.9, and the profile runs 0.10"),
        ({"engine": "sglang"}, "on sglang, and the profile runs vllm"),
        ({"hardware": "NVIDIA_L40S"}, "on NVIDIA_L40S, and the profile takes gpu/h100"),
        (
            {"model": "Qwen/Qwen3-8B"},
            "with Qwen/Qwen3-8B, and the profile serves llama-8b. Where both are one, add “Qwen/Qwen3-8B” to the served",
        ),
    ],
)
def test_a_sweep_of_something_else_is_stored_as_outdated_and_says_why(setting: dict[str, str], said: str) -> None:
    stored, warnings = store(h100(), judged(**setting))
    assert (stored.status, said in stored.stale_why, said in warnings[0]) == ("stale", True, True)


@pytest.mark.parametrize(
    "setting",
    [
        {"engine_version": "v0.10"},
        {"engine": "vLLM"},
        {"hardware": "4xNVIDIA_H100_80GB"},
        {"hardware": "a rented box"},
        {"model": "meta-llama/Llama-8B-Instruct"},
        {"model": "/models/chat/"},
    ],
)
def test_what_is_only_written_otherwise_contradicts_nothing(setting: dict[str, str]) -> None:
    assert store(h100(), judged(**setting))[0].status == "current"


def h100() -> Profile:
    model = make_model("llama-8b", served_names=["chat"])
    return make_profile(model, resource="gpu/h100", engine="vllm", engine_version="0.10", parameters={"tp": "8"})


def test_a_sweep_of_the_next_version_comes_into_force_with_it() -> None:
    profile = h100()
    stored, _ = store(profile, judged(engine_version="0.11"))
    profile.engine_version = "0.11"
    save(profile, actor=None)
    stored.refresh_from_db()
    assert (stored.status, stored.stale_why) == ("current", "")


def test_a_sweep_by_another_slo_than_the_models_is_outdated() -> None:
    wanted = Slo.objects.create(name="wanted", ttft_percentile=95, ttft_ms=200)
    stored, warnings = store(make_profile(make_model(slo=wanted)))
    assert (stored.status, "is to keep wanted" in warnings[0]) == ("stale", True)


# --- accepting ----------------------------------------------------------------------------------------------------
def test_an_outdated_one_is_accepted_with_a_reason() -> None:
    stored, _ = store(h100(), judged(engine_version="0.9"))
    measurement_accept(stored, actor=None, reason="nothing changed for this model")
    stored.refresh_from_db()
    assert (stored.status, stored.stale_why, stored.stale_cause) == ("current", "", "")


def test_accepting_needs_a_reason_and_something_outdated() -> None:
    stored, _ = store(h100(), judged(engine_version="0.9"))
    with pytest.raises(ValidationError, match="reason"):
        measurement_accept(stored, actor=None, reason="")
    with pytest.raises(ValidationError, match="not outdated"):
        measurement_accept(make_measurement(), actor=None, reason="why not")


def test_tokens_are_of_the_stated_level() -> None:
    stages = tuple(
        make_stage(
            level,
            tokens,
            0.0,
        )
        for level, tokens in ((1, 10.0), (2, 20.0))
    )
    bare = tuple(Stage(where=s.where, asked=s.asked, requests=9, errors=0, tokens_per_second=s.tokens_per_second) for s in stages)
    stored, _ = store(make_profile(), judge(Sweep(setting=Setting(tool="made"), stages=bare), SLO), concurrency=1)
    assert (stored.max_concurrency, stored.tokens_per_second) == (1, 10)
