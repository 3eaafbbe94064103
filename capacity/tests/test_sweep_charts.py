"""The chart of sweeps: panels, bounds, the level that is chosen, levels that miss; of one replica; names are never tags."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.domain.measurement.document import evidence_of
from capacity.domain.measurement.evidence import slo_of
from capacity.domain.measurement.judge import judge
from capacity.sweep_charts import Curve, percentile_of, sweep_figure
from capacity.sweep_rows import replicas_of, stage_rows
from capacity.tests.pages import HOSTILE
from capacity.tests.sweeps import LEVELS, SLO, judged, make_sweep
from capacity.views.measurement_page import engine_version, facts, files


def curve(name: str = "one", replicas: int = 1, **fields: Any) -> Curve:
    evidence = evidence_of(judge(make_sweep(*LEVELS), SLO, replicas), slo=SLO, replicas=replicas)
    return Curve(name=name, rows=stage_rows(evidence), slo=slo_of(evidence), replicas=replicas, **fields)


def drawn(figure: dict[str, Any], name: str) -> dict[str, Any]:
    return next(trace for trace in figure["data"] if trace["name"] == name)


def test_a_panel_for_tokens_and_one_for_each_latency_that_is_known() -> None:
    layout = sweep_figure([curve()])["layout"]
    assert [layout[axis]["title"]["text"] for axis in sorted(layout) if axis.startswith("yaxis")] == ["tokens/s", "TTFT, ms"]


def test_bounds_are_lines_in_their_own_panel_and_the_chosen_level_goes_through_all() -> None:
    shapes = sweep_figure([curve(max_concurrency=2)])["layout"]["shapes"]
    assert [(shape["yref"], shape.get("y0"), shape["x0"]) for shape in shapes] == [("paper", 0, 2), ("y2", 500.0, 0)]


def test_a_level_that_misses_is_crossed_with_its_figures() -> None:
    missed = drawn(sweep_figure([curve()]), "misses the SLO")
    assert (missed["x"], missed["y"]) == ([4], [300.0])
    assert "900" in missed["text"][0]


def test_levels_and_tokens_are_of_one_replica() -> None:
    assert drawn(sweep_figure([curve(replicas=2)]), "one")["y"] == [50.0, 95.0, 150.0]


def test_several_curves_show_what_is_judged_alone() -> None:
    names = [trace["name"] for trace in sweep_figure([curve("one"), curve("two")])["data"]]
    assert "one, TTFT p95" in names
    assert "one, TTFT p50" not in names
    assert "one, TTFT p50" in [trace["name"] for trace in sweep_figure([curve("one")])["data"]]


def test_without_the_judged_percentile_the_highest_that_is_there_is_drawn() -> None:
    bare = Curve(name="x", rows=[], slo=None)
    assert percentile_of(bare, "ttft") == "p95"
    assert percentile_of(curve(), "ttft") == "p95"


def test_a_name_is_no_tag() -> None:
    text = str(sweep_figure([curve(HOSTILE), curve("two")])["data"])
    assert "<img" not in text
    assert "&lt;img" in text


def test_evidence_that_is_none_has_no_rows() -> None:
    assert [stage_rows(bad) for bad in (None, {}, {"stages": [1]}, "x")] == [[]] * 4


def test_a_row_says_how_it_was_judged_and_which_was_chosen() -> None:
    rows = stage_rows(evidence_of(judged(), slo=SLO))
    assert [row.outcome for row in rows] == ["meets", "meets", "fails"]
    assert [row.is_chosen for row in rows] == [False, True, False]


TYPED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
STAGE = st.dictionaries(
    st.sampled_from(["asked", "mean_in_flight", "tokens_per_second", "ttft_ms", "flags", "where", "requests", "errors"]), TYPED
)
EVIDENCE = st.fixed_dictionaries(
    {"stages": st.lists(STAGE, max_size=3) | TYPED},
    optional=dict.fromkeys(("setting", "slo", "max_error_share", "replicas", "chosen_concurrency", "files"), TYPED),
)


@given(EVIDENCE | TYPED)
@settings(max_examples=30, deadline=None)
def test_whatever_somebody_typed_as_evidence_is_shown_or_left_out(evidence: Any) -> None:
    rows = stage_rows(evidence)
    assert all(isinstance(text, str) for pair in facts(evidence) for text in pair)
    assert isinstance(engine_version(evidence), str) and all(isinstance(file, dict) for file in files(evidence))
    figure = sweep_figure([Curve(name="x", rows=rows, slo=slo_of(evidence), replicas=replicas_of(evidence))])
    assert json.loads(json.dumps(figure, allow_nan=False)) is not None
