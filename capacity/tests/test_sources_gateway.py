"""Loads from gateways: summed over sources, expiring, and never a reason to remove while anything is in doubt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.ports import Sample
from capacity.sources.gateway import Combined, ModelPush, Push, combine
from capacity.sources.push_document import MAX_ENTRIES, InvalidPush, parse_push

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
STALE = 15


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def push(source: str, age: float, *, held: int | None = None, model: str = "m", **replicas: int) -> Push:
    models = {} if held is None else {model: ModelPush(held=held)}
    return Push(source=source, at=ago(age), replicas=replicas, models=models)


def engine(in_flight: int | None, age: float = 1) -> Mapping[str, Sample]:
    return {"r": Sample(in_flight=in_flight, sampled_at=ago(age), output_tokens_total=77)}


def together(*pushes: Push, engines: Mapping[str, Sample] | None = None, **options) -> Combined:
    return combine(pushes, engines or {}, NOW, STALE, **options)


@pytest.mark.parametrize(
    ("rule", "pushes", "engines", "in_flight"),
    [
        ("the engine's own count where no gateway pushes", [], engine(3), 3),
        ("a gateway's count where the engine has none", [push("a", 1, r=4)], {}, 4),
        ("the sum over sources", [push("a", 1, r=4), push("b", 2, r=5)], {}, 9),
        ("the larger of sum and engine: the sum", [push("a", 1, r=4), push("b", 2, r=5)], engine(8), 9),
        ("the larger of sum and engine: the engine", [push("a", 1, r=4)], engine(8), 8),
        ("the sum where the engine answers without the number", [push("a", 1, r=4)], engine(None), 4),
        ("the sum where the engine's count is too old", [push("a", 1, r=4)], engine(8, age=16), 4),
        ("a source is live at exactly stale_after_seconds", [push("a", 15, r=4)], {}, 4),
        ("a silent source's replica has the engine's count", [push("a", 16, r=4)], engine(3), 3),
        ("and without it is unknown", [push("a", 16, r=4)], {}, None),
        ("also where it last reported 0", [push("a", 16, r=0)], {}, None),
        ("and unknown where the engine does not say", [push("a", 16, r=4)], engine(None), None),
        ("beside a live source too: a part of the sum is missing", [push("a", 16, r=4), push("b", 1, r=5)], {}, None),
        ("then the engine's count stands", [push("a", 16, r=4), push("b", 1, r=5)], engine(7), 7),
        ("unless the live sum alone is larger", [push("a", 16, r=4), push("b", 1, r=9)], engine(7), 9),
        ("an old count of the engine does not stand", [push("a", 16, r=4), push("b", 1, r=9)], engine(7, age=16), None),
        ("a silent source that named other replicas is not missed", [push("a", 16, s=4), push("b", 1, r=5)], {}, 5),
        ("a source that said goodbye is not missed", [push("a", 16), push("b", 1, r=5)], {}, 5),
        ("a source silent for ten minutes is remembered", [push("a", 600, r=4)], {}, None),
        ("a push from the future counts as just now", [push("a", -300, r=4)], {}, 4),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_load_of_a_replica_is(rule, pushes, engines, in_flight):
    sample = together(*pushes, engines=engines).loads["r"]
    assert sample.in_flight == in_flight
    assert sample.output_tokens_total == (77 if engines else None)


def test_a_forgotten_source_leaves_nothing_behind():
    assert together(push("a", 601, held=3, r=4)) == Combined(loads={}, held={}, arrivals={})


def test_a_sum_is_as_old_as_its_oldest_part():
    assert together(push("a", 2, r=1), push("b", 9, r=1), push("c", 5, r=1)).loads["r"].sampled_at == ago(9)


def test_the_engine_s_count_keeps_its_own_time():
    assert together(push("a", 9, r=1), engines=engine(5, age=4)).loads["r"].sampled_at == ago(4)


@pytest.mark.parametrize(
    ("rule", "pushes", "held"),
    [
        ("nothing where nobody pushed", [], "absent"),
        ("nothing where no source speaks of the model", [push("a", 1, r=3)], "absent"),
        ("a source's number", [push("a", 1, held=3)], 3),
        ("0 where that was said", [push("a", 1, held=0)], 0),
        ("the sum over sources", [push("a", 1, held=3), push("b", 1, held=4)], 7),
        ("unknown where the source is silent", [push("a", 16, held=0)], None),
        ("unknown where one of two is silent", [push("a", 16, held=0), push("b", 1, held=4)], None),
        ("known where the silent one spoke of another model", [push("a", 16, held=9, model="other"), push("b", 1, held=4)], 4),
        ("known where the silent one did not say", [push("a", 16, r=1), push("b", 1, held=4)], 4),
        ("nothing where the source said goodbye", [push("a", 16)], "absent"),
    ],
    ids=lambda value: value if isinstance(value, str) and value != "absent" else "",
)
def test_the_held_requests_of_a_model_are(rule, pushes, held):
    assert together(*pushes).held.get("m", "absent") == held


def test_a_last_arrival_is_the_latest_that_any_source_ever_reported():
    arrived = [Push(source=str(age), at=ago(age), models={"m": ModelPush(last_arrival_at=ago(age))}) for age in (5, 3, 900)]
    assert together(*arrived).arrivals == {"m": ago(3)}
    assert together(*arrived, kept_arrivals={"m": ago(1), "n": ago(9000)}).arrivals == {"m": ago(1), "n": ago(9000)}


ages = st.floats(-10, 700)
counts = st.integers(0, 100)
pushes_of_all_kinds = st.lists(
    st.builds(lambda source, age, load, held: push(source, age, held=held, r=load), st.text("ab"), ages, counts, counts),
    max_size=5,
)
engines_of_all_kinds = st.one_of(st.just({}), st.builds(engine, st.none() | counts, ages))


@given(pushes_of_all_kinds, engines_of_all_kinds)
def test_a_source_that_goes_silent_never_lowers_a_known_load_below_what_is_still_seen(pushes, engines):
    """What remains known covers every live source, and never falls below the engine's fresh count."""
    sample = together(*pushes, engines=engines).loads.get("r")
    live = sum(one.replicas["r"] for one in pushes if NOW - one.at <= timedelta(seconds=STALE))
    own = engines["r"].in_flight if engines and NOW - engines["r"].sampled_at <= timedelta(seconds=STALE) else None
    if sample is not None and sample.in_flight is not None and NOW - sample.sampled_at <= timedelta(seconds=STALE):
        assert sample.in_flight >= max(live, own or 0)


@given(pushes_of_all_kinds, engines_of_all_kinds, st.randoms(use_true_random=False))
def test_the_order_of_sources_changes_nothing(pushes, engines, random):
    shuffled = random.sample(pushes, len(pushes))
    assert together(*shuffled, engines=engines) == together(*pushes, engines=engines)


def test_a_whole_push_is_read():
    document = {
        "source": "gateway-1",
        "replicas": {"chat-1": 3, "chat-2": 4.0},
        "models": {"chat": {"held": 2, "last_arrival_seconds_ago": 0.5}, "code": {"last_arrival_at": "2026-11-30T11:59:00Z"}},
    }
    assert parse_push(document, NOW) == Push(
        source="gateway-1",
        at=NOW,
        replicas={"chat-1": 3, "chat-2": 4},
        models={"chat": ModelPush(held=2, last_arrival_at=ago(0.5)), "code": ModelPush(last_arrival_at=ago(60))},
    )


def test_a_push_of_nothing_is_a_goodbye():
    assert parse_push({"source": "g"}, NOW) == Push(source="g", at=NOW)


def test_a_gateway_whose_clock_is_ahead_has_no_arrivals_in_the_future():
    document = {"source": "g", "models": {"m": {"last_arrival_at": "2031-01-01T00:00:00+02:00"}}}
    assert parse_push(document, NOW).models["m"].last_arrival_at == NOW


def faults(text: str) -> list[tuple[str, str]]:
    with pytest.raises(InvalidPush) as refused:
        parse_push(json.loads(text), NOW)
    return [(fault.path, fault.message) for fault in refused.value.faults]


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("[]", "$", "must be an object"),
        ("null", "$", "must be an object"),
        ("{}", "$.source", "is required"),
        ('{"source": ""}', "$.source", "is required"),
        ('{"source": " "}', "$.source", "is required"),
        ('{"source": 3}', "$.source", "is required"),
        (f'{{"source": "{"x" * 201}"}}', "$.source", "1 to 200 characters"),
        ('{"source": "a\\u0000b"}', "$.source", "control characters"),
        ('{"source": "\\ud800"}', "$.source", "is required"),
        ('{"source": "g", "repIicas": {}}', "$", "unknown key 'repIicas'"),
        ('{"source": "g", "replicas": []}', "$.replicas", "must be an object"),
        ('{"source": "g", "replicas": null}', "$.replicas", "must be an object"),
        ('{"source": "g", "replicas": {"": 1}}', "$.replicas", "has a name"),
        ('{"source": "g", "replicas": {"r": -1}}', "$.replicas['r']", "whole number"),
        ('{"source": "g", "replicas": {"r": 2.5}}', "$.replicas['r']", "whole number"),
        ('{"source": "g", "replicas": {"r": true}}', "$.replicas['r']", "whole number"),
        ('{"source": "g", "replicas": {"r": "3"}}', "$.replicas['r']", "whole number"),
        ('{"source": "g", "replicas": {"r": null}}', "$.replicas['r']", "whole number"),
        ('{"source": "g", "replicas": {"r": NaN}}', "$.replicas['r']", "whole number"),
        ('{"source": "g", "replicas": {"r": Infinity}}', "$.replicas['r']", "whole number"),
        ('{"source": "g", "replicas": {"r": 1000000000001}}', "$.replicas['r']", "whole number"),
        (f'{{"source": "g", "replicas": {{"r": 1{"0" * 400}}}}}', "$.replicas['r']", "whole number"),
        ('{"source": "g", "models": {"m": 3}}', "$.models['m']", "must be an object"),
        ('{"source": "g", "models": {"m": {"queued": 3}}}', "$.models['m']", "unknown key 'queued'"),
        ('{"source": "g", "models": {"m": {"held": -3}}}', "$.models['m'].held", "whole number"),
        ('{"source": "g", "models": {"m": {"last_arrival_at": "noon"}}}', "$.models['m'].last_arrival_at", "must be a time"),
        ('{"source": "g", "models": {"m": {"last_arrival_at": 3}}}', "$.models['m'].last_arrival_at", "must be a time"),
        (
            '{"source": "g", "models": {"m": {"last_arrival_at": "2026-11-30T12:00:00"}}}',
            "$.models['m'].last_arrival_at",
            "a time",
        ),
        (
            '{"source": "g", "models": {"m": {"last_arrival_seconds_ago": -1}}}',
            "$.models['m'].last_arrival_seconds_ago",
            "a number",
        ),
        (
            '{"source": "g", "models": {"m": {"last_arrival_seconds_ago": 1e99}}}',
            "$.models['m'].last_arrival_seconds_ago",
            "a number",
        ),
    ],
)
def test_a_bad_push_is_refused_with_the_path_of_its_fault(text, path, words):
    ((found, message),) = faults(text)
    assert found == path
    assert words in message


def test_an_arrival_is_said_in_one_way():
    model = {"last_arrival_at": "2026-11-30T11:00:00Z", "last_arrival_seconds_ago": 3}
    assert faults(json.dumps({"source": "g", "models": {"m": model}}))[0][0] == "$.models['m']"


def test_all_faults_of_a_push_are_named_and_no_more_than_a_hundred():
    assert [path for path, _ in faults('{"x": 1, "replicas": {"r": -1}}')] == ["$", "$.source", "$.replicas['r']"]
    assert len(faults(json.dumps({"source": "g", "replicas": {f"r{number}": -1 for number in range(5_000)}}))) == 100


def test_too_many_entries_are_refused_as_one_fault():
    document = json.dumps({"source": "g", "replicas": {f"r{number}": -1 for number in range(MAX_ENTRIES + 1)}})
    assert [path for path, _ in faults(document)] == ["$.replicas"]
