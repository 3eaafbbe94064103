"""The load chart: arrays in, a figure for Plotly out (plain dicts: building graph objects costs more than the data)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .palette import COLOURS, SERIES_COLOURS
from .series import Floats, Loads, Times, stretches, thin

MOST_SERIES = 20
WORST_SERIES = 10
MOST_POINTS = 500
MOST_MARKERS = 40
MOST_UNREAD = 60
FLOOR_PERCENT = 120.0
PILL_HEIGHT = 0.955  # of the range: wholly inside, where the pointer is watched
PLOT_HEIGHT, LEGEND_ROW_HEIGHT, LEGEND_COLUMNS = 340, 19, 4

UNREAD = {"shape": "/", "size": 6, "solidity": 0.25}
TESTED = {"shape": ".", "size": 6, "solidity": 0.3}
HOVER = "<b>%{fullData.name}</b>: %{y:.1f} %<br>%{x|%Y-%m-%d %H:%M:%S} UTC<extra></extra>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A change on the time axis. `at`: epoch seconds; `count` replicas, 0 for an edit; `url`: where it is told."""

    at: int
    kind: Literal["add", "remove", "edit"]
    count: int
    text: str
    url: str


def load_figure(
    loads: Loads,
    *,
    names: Mapping[int, str],
    start: int,
    end: int,
    scale_down_percent: float,
    markers: Sequence[Marker] = (),
    group_url: str = "",
) -> dict[str, Any]:
    """Each replica's requests in flight as % of its measured concurrency from `start` to `end` (epoch seconds).

    `names`: replica key → name. `group_url`: where several changes that fall on one pill are told, with {start} and {end}.
    """
    top = _top(loads.percent)
    shown, others = _choose(loads.percent)
    unread, tested = _unread_spans(loads, end), _spans(loads, loads.tested.any(axis=0), end)
    traces = [_hatched("no reading", UNREAD, unread, top)] if unread else []
    traces += [_hatched("under test", TESTED, tested[-MOST_UNREAD:], top)] if tested else []
    traces += _band(loads, others) if len(others) else []
    traces += [
        _line(loads.at, loads.percent[row], escape(names.get(int(loads.replicas[row]), "removed replica")), position)
        for position, row in enumerate(shown)
    ]
    traces += _rest(loads, top)
    traces += _pills(markers, top, start, end, group_url)
    legend_rows = -(-sum(trace.get("showlegend", True) for trace in traces) // LEGEND_COLUMNS)
    return {"data": traces, "layout": _layout(start, end, top, scale_down_percent, legend_rows)}


def escape(text: str) -> str:
    """Plotly reads tags in names and texts; a name is never one."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def compact(figure: Mapping[str, Any], start: int) -> dict[str, Any]:
    """The same figure for the wire: `x` as whole seconds after `start` (layout.meta.start, ms), a third of the bytes."""
    data = [{**trace, "x": [None if x is None else (x // 1000) - start for x in trace["x"]]} for trace in figure["data"]]
    layout = {**figure["layout"], "meta": {"start": start * 1000, "colours": {v: f"--{k}" for k, v in COLOURS.items()}}}
    return {"data": data, "layout": layout}


def _top(percent: Floats) -> float:
    known = percent[~np.isnan(percent)]
    return max(FLOOR_PERCENT, float(np.ceil(known.max()))) if known.size else FLOOR_PERCENT


def _choose(percent: Floats) -> tuple[list[int], list[int]]:
    """Rows drawn as lines, and rows that become a band: all, or the worst ten where there are more than twenty."""
    rows = list(range(len(percent)))
    if len(rows) <= MOST_SERIES:
        return rows, []
    peaks = np.where(np.isnan(percent), -1.0, percent).max(axis=1)
    order = np.argsort(-peaks, kind="stable").tolist()
    return order[:WORST_SERIES], order[WORST_SERIES:]


def _line(at: Times, percent: Floats, name: str, position: int) -> dict[str, Any]:
    kept = thin(percent, MOST_POINTS)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": _milliseconds(at[kept]),
        "y": _tenths(percent[kept]),
        "line": {"shape": "hv", "width": 1.6, "color": SERIES_COLOURS[position % len(SERIES_COLOURS)]},
        "connectgaps": False,
        "hovertemplate": HOVER,
    }


def _band(loads: Loads, rows: list[int]) -> list[dict[str, Any]]:
    """The lowest and the highest of the rows at each instant, filled between; where none is known it falls to a gap."""
    part = loads.percent[rows]
    known = ~np.isnan(part)
    any_known = known.any(axis=0)
    lowest = np.where(any_known, np.where(known, part, np.inf).min(axis=0), np.nan)
    highest = np.where(any_known, np.where(known, part, -np.inf).max(axis=0), np.nan)
    edge = {"shape": "hv", "width": 0.5, "color": COLOURS["unknown"]}
    below = {**_line(loads.at, lowest, f"lowest of {len(rows)} others", 0), "line": edge, "showlegend": False}
    above = {**_line(loads.at, highest, f"{len(rows)} others, lowest to highest", 0), "line": edge}
    return [below, {**above, "fill": "tonexty", "fillcolor": "rgba(122,133,145,0.18)"}]


def _rest(loads: Loads, top: float) -> list[dict[str, Any]]:
    if np.isnan(loads.rest).all():
        return []
    clipped = np.where(loads.rest > top, top, loads.rest)
    line = _line(loads.at, clipped, "the rest, if one were taken back", 0)
    line["line"] = {"shape": "hv", "width": 1.6, "dash": "dot", "color": COLOURS["muted"]}
    leaving = stretches(loads.rest > top)
    if not leaving:
        return [line]
    line["hovertemplate"] = HOVER.replace("%{y:.1f} %", "%{y:.1f} % or more")
    firsts = np.array([first for first, _ in leaving[-MOST_MARKERS:]])
    arrows = {
        "type": "scatter",
        "mode": "markers",
        "name": "leaves the range",
        "x": _milliseconds(loads.at[firsts]),
        "y": [top] * len(firsts),
        "marker": {"symbol": "triangle-up", "size": 8, "color": COLOURS["muted"]},
        "cliponaxis": False,
        "text": [f"{value:,.0f} %" for value in loads.rest[firsts]],
        "hovertemplate": "the rest leaves the range: %{text}<br>%{x|%Y-%m-%d %H:%M:%S} UTC<extra></extra>",
        "showlegend": False,
    }
    return [line, arrows]


def _unread_spans(loads: Loads, end: int) -> list[tuple[int, int]]:
    """Stretches in which a replica had no reading or no pass came, the one before `end` too; the longest if too many."""
    if loads.is_empty:
        return []
    last, spans = int(loads.at[-1]), _spans(loads, loads.unread, end)
    if end - last > 2 * loads.interval_seconds:
        spans.append((last + int(loads.interval_seconds), end))
    return sorted(sorted(spans, key=lambda span: span[0] - span[1])[:MOST_UNREAD])


def _spans(loads: Loads, flags: NDArray[np.bool_], end: int) -> list[tuple[int, int]]:
    """Begin and end of each unbroken run of true flags [n]."""
    if loads.is_empty:
        return []
    until = np.append(loads.at[1:], min(end, int(loads.at[-1]) + int(loads.interval_seconds)))
    return [(int(loads.at[first]), int(until[final])) for first, final in stretches(flags)]


def _hatched(name: str, pattern: Mapping[str, Any], spans: Sequence[tuple[int, int]], top: float) -> dict[str, Any]:
    xs: list[int | None] = []
    ys: list[float | None] = []
    for first, last in spans:
        xs += [first * 1000, first * 1000, last * 1000, last * 1000, None]
        ys += [0, top, top, 0, None]
    return {
        "type": "scatter",
        "mode": "none",
        "name": name,
        "x": xs,
        "y": ys,
        "fill": "toself",
        "fillcolor": "rgba(122,133,145,0.14)",
        "fillpattern": {**pattern, "fgcolor": COLOURS["unknown"], "fillmode": "overlay"},
        "hoverinfo": "skip",
    }


def _pills(markers: Sequence[Marker], top: float, start: int, end: int, group_url: str) -> list[dict[str, Any]]:
    inside = sorted((marker for marker in markers if start <= marker.at <= end), key=lambda marker: marker.at)
    if not inside:
        return []
    pills = _grouped(inside, (end - start) / MOST_MARKERS, group_url)
    stems_x = [x for pill in pills for x in (pill.at * 1000, pill.at * 1000, None)]
    stems = {
        "type": "scatter",
        "mode": "lines",
        "name": "changes",
        "x": stems_x,
        "y": [0, top, None] * len(pills),
        "line": {"width": 1, "color": COLOURS["line"]},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    colours = {"add": COLOURS["accent"], "remove": COLOURS["good"], "edit": COLOURS["unknown"]}
    faces = {
        "type": "scatter",
        "mode": "markers+text",
        "name": "changes",
        "x": [pill.at * 1000 for pill in pills],
        "y": [PILL_HEIGHT * top] * len(pills),
        "marker": {"symbol": "line-ew", "size": 9, "line": {"width": 17, "color": [colours[pill.kind] for pill in pills]}},
        "text": [_face(pill) for pill in pills],
        "textfont": {"size": 11, "color": COLOURS["card"]},
        "hovertext": [escape(pill.text) for pill in pills],
        "hovertemplate": "%{hovertext}<br>%{x|%Y-%m-%d %H:%M:%S} UTC<extra></extra>",
        "customdata": [pill.url for pill in pills],
        "cliponaxis": False,
        "showlegend": False,
        "meta": "pills",
    }
    return [stems, faces]


def _face(pill: Marker) -> str:
    return {"add": f"+{pill.count}", "remove": f"−{pill.count}", "edit": "✎"}[pill.kind]


def _grouped(markers: Sequence[Marker], width: float, group_url: str) -> list[Marker]:
    """Changes that would cover each other share one pill: its number is their sum, its link all of them."""
    groups: list[list[Marker]] = []
    for marker in markers:
        if groups and marker.at - groups[-1][0].at < width and groups[-1][0].kind == marker.kind:
            groups[-1].append(marker)
        else:
            groups.append([marker])
    return [group[0] if len(group) == 1 else _one_pill(group, group_url) for group in groups]


def _one_pill(group: Sequence[Marker], group_url: str) -> Marker:
    first, last = group[0], group[-1]
    return Marker(
        at=first.at,
        kind=first.kind,
        count=sum(marker.count for marker in group),
        text=f"{len(group)} changes; the first: {first.text}",
        url=group_url.format(start=first.at, end=last.at + 1) if group_url else first.url,
    )


def _layout(start: int, end: int, top: float, scale_down_percent: float, legend_rows: int) -> dict[str, Any]:
    share = f"{scale_down_percent:g} %"
    axis = {"gridcolor": COLOURS["line"], "linecolor": COLOURS["line"], "zeroline": False, "color": COLOURS["muted"]}
    return {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 12, "color": COLOURS["ink"], "family": "system-ui, sans-serif"},
        "margin": {"l": 52, "r": 124, "t": 22, "b": 34},
        "height": PLOT_HEIGHT + LEGEND_ROW_HEIGHT * legend_rows,
        "hovermode": "closest",
        "dragmode": "zoom",
        "hoverlabel": {"bgcolor": COLOURS["card"], "bordercolor": COLOURS["muted"], "font": {"color": COLOURS["ink"]}},
        "legend": {"orientation": "h", "y": -0.14, "x": 0, "font": {"color": COLOURS["muted"]}},
        "xaxis": {**axis, "type": "date", "range": [start * 1000, end * 1000], "showgrid": False},
        "yaxis": {**axis, "range": [0, top], "ticksuffix": " %", "fixedrange": True, "dtick": _tick(top)},
        "shapes": [
            _level(100, COLOURS["bad"], "solid", "measured concurrency"),
            _level(scale_down_percent, COLOURS["warn"], "dash", "scale-down share"),
        ],
        "annotations": [
            _margin_label(100, "100 %: measured,<br>adds above", COLOURS["bad"], "bottom"),
            _margin_label(scale_down_percent, f"{share}: the rest<br>must stay below", COLOURS["warn"], "top"),
        ],
    }


def _tick(top: float) -> float:
    return next((step for step in (20, 50, 100, 200, 500, 1000) if top / step <= 8), 10 ** np.floor(np.log10(top)))


def _level(percent: float, colour: str, dash: str, name: str) -> dict[str, Any]:
    line = {"color": colour, "width": 1.6, "dash": dash}
    return {"type": "line", "name": name, "xref": "paper", "x0": 0, "x1": 1, "y0": percent, "y1": percent, "line": line}


def _margin_label(percent: float, text: str, colour: str, side: str) -> dict[str, Any]:
    """Above its line or below it, so that the two never meet, however far the range reaches."""
    place = {"xref": "paper", "x": 1, "xanchor": "left", "xshift": 6, "y": percent, "yanchor": side, "align": "left"}
    return {**place, "text": text, "showarrow": False, "font": {"size": 11, "color": colour}}


def _milliseconds(at: Times) -> list[int]:
    return (at * 1000).tolist()


def _tenths(percent: NDArray[np.float64]) -> list[float | None]:
    """To 0.1 %, None where unknown."""
    rounded = np.round(percent, 1).tolist()
    return [None if value != value else value for value in rounded]
