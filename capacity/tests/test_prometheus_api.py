"""What a Prometheus server's HTTP API answers: no data is unknown, a refusal is its sentence, and nothing else gets through."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.sources.prometheus_api import Answer, ApiError, Row, read_answer


def answer(kind: str, result: object, **more: object) -> str:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}, **more})


def refusal(body: str | bytes) -> str:
    with pytest.raises(ApiError) as error:
        read_answer(body)
    return str(error.value)


def test_a_vector_is_a_point_a_series():
    found = read_answer(answer("vector", [{"metric": {"__name__": "up", "job": "a"}, "value": [17.5, "64"]}]))
    assert found == Answer(rows=(Row(labels={"__name__": "up", "job": "a"}, points=((17.5, 64.0),)),))


def test_a_matrix_is_points_in_their_order():
    found = read_answer(answer("matrix", [{"metric": {}, "values": [[1, "1"], [2, "2e3"]]}, {"metric": {}, "values": []}]))
    assert found.rows == (Row(labels={}, points=((1.0, 1.0), (2.0, 2000.0))),)


def test_a_scalar_is_one_pair_and_no_list_of_series():
    assert read_answer(answer("scalar", [3, "80"])).rows == (Row(labels={}, points=((3.0, 80.0),)),)


def test_no_series_is_no_data_and_not_0():
    assert read_answer(answer("vector", [])) == Answer(rows=())


def test_nan_stays_nan():
    ((_, value),) = read_answer(answer("vector", [{"metric": {}, "value": [1, "NaN"]}])).rows[0].points
    assert math.isnan(value)


def test_warnings_are_kept_with_what_was_found():
    found = read_answer(answer("vector", [], warnings=["a store is away", "x" * 1000]))
    assert found.warnings == ("a store is away", "x" * 300)


@pytest.mark.parametrize(
    "row",
    [None, 3, [], {}, {"metric": []}, {"metric": {}}, {"metric": {}, "value": [1]}, {"metric": {}, "value": [1, 2]},
     {"metric": {}, "value": ["1", "2"]}, {"metric": {}, "value": [1, "two"]}, {"metric": {}, "value": [1e300, "2"]},
     {"metric": {}, "value": [-1, "2"]}, {"metric": {}, "value": [True, None]}, {"metric": {}, "histogram": [1, {"count": "3"}]}],
)  # fmt: skip
def test_a_series_that_cannot_be_read_is_left_out_and_hurts_no_other(row):
    good = {"metric": {}, "value": [1, "2"]}
    assert len(read_answer(answer("vector", [row, good])).rows) == 1


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", "The Prometheus server's answer is no JSON."),
        ("<html>", "The Prometheus server's answer is no JSON."),
        (b"\xff\xfe", "The Prometheus server's answer is no JSON."),
        ("[" * 100_000, "The Prometheus server's answer is no JSON."),
        ("[]", "The answer is none of a Prometheus server's HTTP API."),
        ('{"status": "ok"}', "The answer is none of a Prometheus server's HTTP API."),
        ('{"status": "success"}', "The Prometheus server's answer is of a kind that holds no numbers."),
        ('{"status": "success", "data": []}', "The Prometheus server's answer is of a kind that holds no numbers."),
        (answer("string", [1, "x"]), "The Prometheus server's answer is of a kind that holds no numbers."),
        (answer("vector", {}), "The Prometheus server's answer is of a kind that holds no numbers."),
        ('{"status": "error"}', "The Prometheus server refused the query (it does not say why)."),
        ('{"status": "error", "errorType": "timeout", "error": "too slow"}',
         "The Prometheus server refused the query (timeout: too slow)."),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_a_sentence(body, sentence):
    assert refusal(body) == sentence


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda more: st.lists(more) | st.dictionaries(st.text(), more)
    )
)
def test_no_json_whatever_crashes_the_reader(result):
    for kind in ("vector", "matrix", "scalar"):
        try:
            read_answer(answer(kind, result, warnings=result))
        except ApiError as error:
            assert str(error)


RECORDED = {
    "colon_empty_om.json": [],
    "empty_gpu_cache_usage.json": [],
    "instant_running.json": [64.0, 16.0],
    "nan_ratio.json": [None],
    "quantile_nan.json": [],
    "range_running.json": [64.0, 16.0],
    "rate_generation_tokens.json": [3707.83988578528],
    "scalar.json": [80.0],
    "sum_running_by_model.json": [80.0],
    "sum_running_one_down.json": [64.0],
    "ttft_p99.json": [0.4766197183098593],
    "underscore_om.json": [61.0, 17.0],
    "up_one_down.json": [1.0, 0.0],
}
REFUSED = {
    "error_parse.json": "bad_data",
    # other addresses of the API: no answers to a query
    "metadata_om.json": "holds no numbers",
    "names_om.json": "holds no numbers",
    "series_running.json": "holds no numbers",
    "targets.json": "holds no numbers",
}


def test_every_recorded_answer_reads_as_its_index_says(shared: Path):
    folder = shared / "data" / "metrics" / "prometheus-api"
    assert {path.name for path in folder.iterdir()} == {*RECORDED, *REFUSED}
    for name, values in RECORDED.items():
        last = [row.points[-1][1] for row in read_answer((folder / name).read_bytes()).rows]
        assert [None if math.isnan(value) else value for value in last] == values, name
    for name, part in REFUSED.items():
        assert part in refusal((folder / name).read_bytes()), name
