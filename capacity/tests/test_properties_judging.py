"""What holds of every sweep, whatever stages it has."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from capacity.domain.measurement.combine import sweeps
from capacity.domain.measurement.document import evidence_of, import_document
from capacity.domain.measurement.evidence import slo_of, sweep_of
from capacity.domain.measurement.judge import judge
from capacity.domain.measurement.level import level
from capacity.domain.measurement.types import Contents, Judgement, Slo

from .strategies import examples
from .sweep_facts import CONTENTS, SLOS

FILES = st.lists(CONTENTS, max_size=2)


def judged(files: list[Contents], slo: Slo, replicas: int = 1) -> list[Judgement]:
    return [judge(sweep, slo, replicas) for sweep in sweeps(files)]


@given(FILES, SLOS, st.randoms())
@examples(60)
def test_the_order_of_files_and_stages_changes_nothing(files: list[Contents], slo: Slo, random: Random) -> None:
    shuffled = [replace(file, stages=tuple(random.sample(file.stages, len(file.stages)))) for file in files]
    random.shuffle(shuffled)
    assert judged(shuffled, slo) == judged(files, slo)


@given(FILES, SLOS, st.data())
@examples(60)
def test_a_file_twice_is_once(files: list[Contents], slo: Slo, data: st.DataObject) -> None:
    twice = [*files, data.draw(st.sampled_from(files))] if files else []
    assert judged(twice, slo) == judged(files, slo)


@given(FILES, SLOS, st.integers(1, 3))
@examples(60)
def test_both_numbers_are_of_the_chosen_stage_and_no_more_than_was_asked(files: list[Contents], slo: Slo, replicas: int) -> None:
    for found in judged(files, slo, replicas):
        assert found.why.endswith(".")
        if found.measured is None:
            continue
        assert found.chosen in found.sweep.stages
        assert found.measured.tokens_per_second * replicas == (found.chosen.tokens_per_second or 0)
        assert found.measured.max_concurrency * replicas <= max(1, (level(found.chosen) or 0) + 0.5)
        assert found.chosen.asked is None or found.measured.max_concurrency * replicas <= found.chosen.asked
        assert (found.measured.max_concurrency == 0) == (found.measured.kind == "never_met")


@given(FILES, SLOS, st.sampled_from([1.0, 1.01, 5.0, 1e6]))
@examples(60)
def test_a_looser_bound_never_lowers_the_answer(files: list[Contents], slo: Slo, factor: float) -> None:
    looser = replace(slo, bounds=tuple(replace(bound, ms=bound.ms * factor) for bound in slo.bounds))
    for strict, loose in zip(judged(files, slo), judged(files, looser), strict=True):
        if strict.measured is not None and loose.measured is not None:
            assert strict.measured.max_concurrency <= loose.measured.max_concurrency


@given(FILES, SLOS, st.integers(1, 3))
@examples(60)
def test_stored_evidence_is_judged_the_same_again(files: list[Contents], slo: Slo, replicas: int) -> None:
    for found in judged(files, slo, replicas):
        stored = json.loads(json.dumps(evidence_of(found, slo=slo, replicas=replicas), allow_nan=False))
        again = sweep_of(stored)
        assert again is not None
        assert slo_of(stored) is not None
        assert judge(again, slo_of(stored), replicas) == found


@given(FILES, SLOS)
@examples(20)
def test_every_answer_is_standard_json(files: list[Contents], slo: Slo) -> None:
    answer = import_document(judged(files, slo), [])
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["stages", "setting", "ttft_ms", "flags", "asked", "slo", "where", "requests", "p95"]), inner
        )
    ),
)


@given(JSON)
@examples(60)
def test_evidence_of_any_form_is_a_sweep_or_none(evidence: object) -> None:
    found = sweep_of(evidence)
    assert found is None or judge(found, slo_of(evidence)).why
