"""The load chart's figure: both lines at their heights, gaps where unknown, names that are never markup."""

from __future__ import annotations

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from capacity.charts import MOST_POINTS, Marker, compact, load_figure
from capacity.samples import pack
from capacity.series import from_samples

T0 = 1_800_000_000
END = T0 + 3600


def loads_of(replicas=3, steps=40, load=lambda key, step: 5, capacity=10, demand=15, rest=20):
    rows = [
        (
            T0 + 15 * step,
            demand,
            rest,
            pack((key, load(key, step), capacity, None, "ready") for key in range(replicas)),
        )
        for step in range(steps)
    ]
    return from_samples(rows, 15)


def figure_of(loads, markers=(), names=None, percent=70.0, end=END):
    given = names or {int(key): f"r{key}" for key in loads.replicas}
    return load_figure(
        loads, names=given, start=T0, end=end, scale_down_percent=percent, markers=markers, group_url="/d/?from={start}&to={end}"
    )


def traces(figure, prefix):
    return [trace for trace in figure["data"] if trace["name"].startswith(prefix)]


def test_plotly_accepts_the_figure():
    markers = [Marker(at=T0 + 60, kind="add", count=2, text="two", url="/d/1/")]
    go.Figure(figure_of(loads_of(25, load=lambda key, step: None if step == 7 else key), markers))


def test_only_svg_traces_are_drawn():
    assert {trace["type"] for trace in figure_of(loads_of())["data"]} == {"scatter"}


def test_the_two_lines_stand_at_the_models_share_and_at_its_measured_concurrency():
    figure = figure_of(loads_of(), percent=62.5)
    lines = {shape["y0"]: shape["line"]["dash"] for shape in figure["layout"]["shapes"]}
    assert lines == {100: "solid", 62.5: "dash"}
    labels = {note["y"]: note for note in figure["layout"]["annotations"]}
    assert labels[62.5]["text"].startswith("62.5 %")
    assert all(note["x"] == 1 and note["xanchor"] == "left" for note in labels.values())


def test_the_range_is_from_zero_to_120_percent_or_the_data():
    assert figure_of(loads_of())["layout"]["yaxis"]["range"] == [0, 120]
    assert figure_of(loads_of(load=lambda key, step: 31))["layout"]["yaxis"]["range"] == [0, 310]


def test_lines_are_steps_and_unknowns_are_gaps():
    line = traces(figure_of(loads_of(1, load=lambda key, step: None if step == 3 else 5)), "r0")[0]
    assert line["line"]["shape"] == "hv"
    assert line["connectgaps"] is False
    assert line["y"][2:5] == [50.0, None, 50.0]


def test_unread_stretches_are_hatched():
    hatched = traces(figure_of(loads_of(1, load=lambda key, step: None if step == 3 else 5), end=T0 + 600), "no reading")[0]
    assert hatched["x"][:4] == [(T0 + 45) * 1000] * 2 + [(T0 + 60) * 1000] * 2
    assert hatched["fillpattern"]["shape"] == "/"


def test_passes_that_stopped_are_hatched_up_to_the_end():
    hatched = traces(figure_of(loads_of(1, steps=4)), "no reading")[0]
    assert hatched["x"][2] == END * 1000


def test_the_rest_is_dotted_and_shown_as_leaving_the_range():
    figure = figure_of(loads_of(demand=60, rest=20))
    rest = traces(figure, "the rest")[0]
    assert rest["line"]["dash"] == "dot"
    assert max(rest["y"]) == 120
    leaving = traces(figure, "leaves")[0]
    assert leaving["marker"]["symbol"] == "triangle-up"
    assert leaving["text"] == ["300 %"]


def test_more_than_twenty_replicas_are_the_worst_ten_and_a_band():
    figure = figure_of(loads_of(25, load=lambda key, step: key % 11))
    drawn = traces(figure, "r")
    assert len(drawn) == 10
    assert min(max(trace["y"]) for trace in drawn) >= 60
    below, above = traces(figure, "lowest of 15")[0], traces(figure, "15 others")[0]
    assert above["fill"] == "tonexty"
    assert min(below["y"]) == 0
    assert max(above["y"]) < 90


def test_twenty_replicas_are_twenty_lines():
    assert len(traces(figure_of(loads_of(20)), "r")) == 20


def test_a_day_keeps_its_points_bounded_and_its_extremes():
    peaks = {3000: 40, 4000: 0}
    figure = figure_of(loads_of(2, steps=5760, load=lambda key, step: peaks.get(step, 5)), end=T0 + 86_400)
    for line in traces(figure, "r"):
        assert len(line["x"]) <= MOST_POINTS
        assert (min(line["y"]), max(line["y"])) == (0.0, 400.0)


def test_pills_carry_their_number_and_link():
    markers = [
        Marker(at=T0 + 60, kind="add", count=2, text="two", url="/d/1/"),
        Marker(at=T0 + 1000, kind="remove", count=1, text="one", url="/d/2/"),
        Marker(at=T0 + 2000, kind="edit", count=0, text="edited", url="/m/"),
        Marker(at=T0 - 5, kind="add", count=9, text="before", url="/d/0/"),
    ]
    pills = next(trace for trace in figure_of(loads_of(), markers)["data"] if trace.get("meta") == "pills")
    assert pills["text"] == ["+2", "−1", "✎"]
    assert pills["customdata"] == ["/d/1/", "/d/2/", "/m/"]


def test_pills_that_would_cover_each_other_are_one_with_their_sum():
    markers = [Marker(at=T0 + 10 + at, kind="add", count=1, text="one", url=f"/d/{at}/") for at in (0, 15, 30)]
    pills = next(trace for trace in figure_of(loads_of(), markers)["data"] if trace.get("meta") == "pills")
    assert pills["text"] == ["+3"]
    assert pills["customdata"] == [f"/d/?from={T0 + 10}&to={T0 + 41}"]


@pytest.mark.parametrize("name", ["<b>r</b>", '"><img src=x onerror=alert(1)>', '<a href="javascript:alert(1)">x</a>', "a & b"])
def test_names_are_never_markup(name):
    markers = [Marker(at=T0 + 60, kind="add", count=1, text=name, url="/d/1/")]
    figure = figure_of(loads_of(1), markers, names={0: name})
    texts = [trace["name"] for trace in figure["data"]] + [text for t in figure["data"] for text in t.get("hovertext", [])]
    assert not any("<" in text or ">" in text for text in texts)
    assert "%{fullData.name}" in traces(figure, "the rest")[0]["hovertemplate"]


def test_hovers_tell_exact_utc():
    assert "%Y-%m-%d %H:%M:%S} UTC" in traces(figure_of(loads_of(1)), "r0")[0]["hovertemplate"]


def test_the_wire_form_is_the_same_figure_in_seconds():
    figure = figure_of(loads_of(2, load=lambda key, step: None if step == 5 else step))
    wire = compact(figure, T0)
    start = wire["layout"]["meta"]["start"]
    for sent, drawn in zip(wire["data"], figure["data"], strict=True):
        assert [None if x is None else start + 1000 * x for x in sent["x"]] == drawn["x"]
        assert sent["y"] == drawn["y"]


def test_a_day_of_twenty_replicas_is_small_on_the_wire():
    noise = np.random.default_rng(1).integers(0, 70, size=(20, 5760))
    loads = loads_of(20, steps=5760, load=lambda key, step: int(noise[key, step]), capacity=64)
    wire = json.dumps(compact(figure_of(loads, end=T0 + 86_400), T0), separators=(",", ":"))
    assert len(wire) < 200_000


def test_no_samples_are_a_chart_with_its_two_lines():
    figure = figure_of(from_samples([], 15))
    assert figure["data"] == []
    assert len(figure["layout"]["shapes"]) == 2
