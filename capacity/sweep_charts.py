"""The chart of sweeps: tokens/s and latencies over requests in flight, in panels one above the other. Rows in, a figure out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from .charts import escape
from .domain.measurement.types import LATENCIES, Latency, Slo, Statistics
from .domain.measurement.words import LATENCY
from .palette import COLOURS, SERIES_COLOURS
from .sweep_rows import StageRow

PANEL_HEIGHT: Final = 168
GAP: Final = 0.05
USUAL_PERCENTILE: Final = 95
MOST_TICKS: Final = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One sweep, of one replica: levels and tokens/s are divided by `replicas`. `max_concurrency` None: it gives none."""

    name: str
    rows: Sequence[StageRow]
    slo: Slo | None
    replicas: int = 1
    max_concurrency: int | None = None

    @property
    def points(self) -> list[tuple[float, StageRow]]:
        found = [(row.level / self.replicas, row) for row in self.rows if row.level]
        return sorted(found, key=lambda point: point[0])


def sweep_figure(curves: Sequence[Curve]) -> dict[str, Any]:
    """Panels only of what some curve has. One curve shows its median too; several show the judged percentile alone."""
    panels = [latency for latency in LATENCIES if any(_has(curve, latency) for curve in curves)]
    count = 1 + len(panels)
    traces: list[dict[str, Any]] = []
    shapes: list[dict[str, Any]] = []
    for place, curve in enumerate(curves):
        colour = SERIES_COLOURS[place % len(SERIES_COLOURS)]
        traces += _throughput(curve, colour)
        for panel, latency in enumerate(panels):
            traces += _latency(curve, latency, panel + 2, colour, with_median=len(curves) == 1)
        shapes += _chosen(curve, colour)
    shapes += _bounds(curves, panels)
    return {"data": traces, "layout": _layout(curves, panels, count, shapes)}


def percentile_of(curve: Curve, latency: Latency) -> str:
    """What is drawn: the percentile that the SLO bounds, else the 95th, else the highest that the sweep has."""
    bounded = next((bound.percentile for bound in curve.slo.bounds if bound.latency == latency), None) if curve.slo else None
    wanted = f"p{bounded or USUAL_PERCENTILE}"
    known = {name for _, row in curve.points for name in row.stage.statistics(latency) if name.startswith("p")}
    return wanted if wanted in known or not known else max(known, key=lambda name: float(name[1:]))


def _has(curve: Curve, latency: Latency) -> bool:
    return any(row.stage.statistics(latency) for _, row in curve.points)


def _throughput(curve: Curve, colour: str) -> list[dict[str, Any]]:
    points = [(x, row.stage.tokens_per_second / curve.replicas) for x, row in curve.points if row.stage.tokens_per_second]
    return [
        {**_line(curve, points, colour, 1), "name": escape(curve.name), "showlegend": True, **_hover("tokens/s")},
        *_missed(curve),
    ]


def _latency(curve: Curve, latency: Latency, panel: int, colour: str, *, with_median: bool) -> list[dict[str, Any]]:
    judged = percentile_of(curve, latency)
    drawn = _percentile(curve, latency, judged, panel, colour)
    if not with_median or judged == "p50":
        return drawn
    return [
        *drawn,
        *({**trace, "line": {**trace["line"], "dash": "dot"}} for trace in _percentile(curve, latency, "p50", panel, colour)),
    ]


def _percentile(curve: Curve, latency: Latency, name: str, panel: int, colour: str) -> list[dict[str, Any]]:
    points = [(x, value) for x, row in curve.points if (value := _value(row.stage.statistics(latency), name)) is not None]
    what = f"{LATENCY[latency]} {name}"
    trace = _line(curve, points, colour, panel)
    return [{**trace, "name": f"{escape(curve.name)}, {what}", "showlegend": False, **_hover(f"ms {what}")}] if points else []


def _value(statistics: Statistics, name: str) -> float | None:
    return statistics.get(name)


def _line(curve: Curve, points: Sequence[tuple[float, float]], colour: str, panel: int) -> dict[str, Any]:
    axis = "" if panel == 1 else str(panel)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [round(x, 3) for x, _ in points],
        "y": [round(y, 3) for _, y in points],
        "xaxis": "x",
        "yaxis": f"y{axis}",
        "legendgroup": escape(curve.name),
        "line": {"width": 1.8, "color": colour},
        "marker": {"size": 7, "color": colour},
    }


def _hover(unit: str) -> dict[str, Any]:
    return {"hovertemplate": "<b>%{fullData.name}</b><br>%{y:,.1f} " + unit + "<br>at %{x:,.1f} in flight<extra></extra>"}


def _missed(curve: Curve) -> list[dict[str, Any]]:
    """A cross on each level that misses the SLO, with the figures that decided it."""
    missed = [(x, row) for x, row in curve.points if row.outcome == "fails" and row.stage.tokens_per_second]
    if not missed:
        return []
    points = [(x, (row.stage.tokens_per_second or 0) / curve.replicas) for x, row in missed]
    trace = _line(curve, points, COLOURS["bad"], 1)
    return [
        {
            **trace,
            "mode": "markers",
            "name": "misses the SLO",
            "showlegend": False,
            "marker": {"symbol": "x", "size": 11, "color": COLOURS["bad"]},
            "text": [escape(row.said) for _, row in missed],
            "hovertemplate": "misses the SLO: %{text}<br>at %{x:,.1f} in flight<extra></extra>",
        }
    ]


def _chosen(curve: Curve, colour: str) -> list[dict[str, Any]]:
    if not curve.max_concurrency:
        return []
    line = {"color": colour, "width": 1.4, "dash": "dash"}
    x = curve.max_concurrency
    return [{"type": "line", "xref": "x", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line}]


def _bounds(curves: Sequence[Curve], panels: Sequence[Latency]) -> list[dict[str, Any]]:
    """Each bound once, in its own panel."""
    found = {(bound.latency, bound.ms) for curve in curves if curve.slo for bound in curve.slo.bounds}
    line = {"color": COLOURS["bad"], "width": 1.6}
    return [
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "yref": f"y{panels.index(latency) + 2}",
            "y0": ms,
            "y1": ms,
            "line": line,
        }
        for latency, ms in sorted(found)
        if latency in panels
    ]


def _layout(curves: Sequence[Curve], panels: Sequence[Latency], count: int, shapes: list[dict[str, Any]]) -> dict[str, Any]:
    levels = sorted({round(x, 1) for curve in curves for x, _ in curve.points})
    axis = {"gridcolor": COLOURS["line"], "linecolor": COLOURS["line"], "zeroline": False, "color": COLOURS["muted"]}
    titles = ["tokens/s", *(f"{LATENCY[latency]}, ms" for latency in panels)]
    shown = levels[:: -(-len(levels) // MOST_TICKS)] if levels else []
    layout: dict[str, Any] = {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 12, "color": COLOURS["ink"], "family": "system-ui, sans-serif"},
        "margin": {"l": 64, "r": 16, "t": 22, "b": 44},
        "height": PANEL_HEIGHT * count + 90,
        "hovermode": "closest",
        "dragmode": False,
        "hoverlabel": {"bgcolor": COLOURS["card"], "bordercolor": COLOURS["muted"], "font": {"color": COLOURS["ink"]}},
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "font": {"color": COLOURS["muted"]}},
        "xaxis": {
            **axis,
            "type": "log",
            "tickvals": shown,
            "ticktext": [f"{x:g}" for x in shown],
            "title": {"text": "requests in flight, one replica"},
            "anchor": "y" if count == 1 else f"y{count}",
            "fixedrange": True,
        },
        "shapes": shapes,
        "annotations": [],
        "meta": {"colours": {value: f"--{name}" for name, value in COLOURS.items()}},
    }
    for place, title in enumerate(titles):
        name = "yaxis" if place == 0 else f"yaxis{place + 1}"
        layout[name] = {
            **axis,
            "rangemode": "tozero",
            "fixedrange": True,
            "domain": _domain(place, count),
            "title": {"text": title},
        }
    return layout


def _domain(place: int, count: int) -> list[float]:
    """From the top down, with a gap between two."""
    height = (1 - GAP * (count - 1)) / count
    top = 1 - place * (height + GAP)
    return [round(max(0.0, top - height), 4), round(top, 4)]
