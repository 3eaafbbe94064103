"""Whole snapshots for Hypothesis: small numbers, tight rooms and limits, times at their edges, so that rules meet.

`snapshots()` draws valid `llmgw.snapshot/1` documents. `LLMGW_EXAMPLES` multiplies the number of examples of every property
(default 1): `LLMGW_EXAMPLES=20 pytest capacity/tests/test_properties_*.py`.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

Document = dict[str, Any]

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
CLASSES = ("gpu/h100", "gpu/a100", "gpu/h1", "cpu")
TARGETS = ("gpu", "gpu/h100", "gpu/h1", "gpu/a100", "cpu")
NONSENSE: tuple[Any, ...] = (-1, 2.5, True, "3", [], {}, 10**12 + 1)


def examples(count: int) -> settings:
    """The one place that says how hard a property is tried: `count` examples, more by LLMGW_EXAMPLES."""
    return settings(
        max_examples=max(1, int(count * float(os.environ.get("LLMGW_EXAMPLES", "1")))),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )


def moment(seconds_ago: float, at: datetime = NOW) -> str:
    return (at - timedelta(seconds=seconds_ago)).isoformat().replace("+00:00", "Z")


def often(usual: Any, *rare: Any, weight: int = 6) -> st.SearchStrategy[Any]:
    """Mostly `usual`, at times one of the others."""
    return st.sampled_from([usual] * weight + list(rare))


def edges(*seconds: int) -> st.SearchStrategy[str]:
    """A time just before, at and just after each of these ages, now, in the future, and long ago."""
    ages = sorted({age for n in seconds for age in (n - 1, n, n + 1)} | {-30, 0, 7200})
    return st.sampled_from([moment(age) for age in ages])


def optional(draw: st.DrawFn, row: Document, **keys: st.SearchStrategy[Any]) -> Document:
    """Add each key with a drawn value, or leave it out where the draw is `...`."""
    drawn = {key: draw(strategy) for key, strategy in keys.items()}
    return row | {key: value for key, value in drawn.items() if value is not ...}


@st.composite
def settings_rows(draw: st.DrawFn) -> Document:
    return optional(
        draw, {},
        scale_down_fraction=often(..., "0.70", "7/10", "0.5", "2/3", "0.90"),
        down_window_seconds=often(..., 60, 1),
        stale_after_seconds=often(..., 10),
        start_timeout_seconds=often(..., 300),
        unready_grace_seconds=often(..., 30),
        idle_seconds=often(..., 200),
        wake_seconds=often(..., 60),
        max_step_up=often(..., 1, 2, 100, weight=2),
        reclaim=often(..., False),
        reclaim_wait_seconds=often(..., 0),
        stale_measurements=often(..., "use", "add_only", weight=2),
    )  # fmt: skip


@st.composite
def node_rows(draw: st.DrawFn, name: str) -> Document:
    offered = draw(st.lists(st.sampled_from(CLASSES), min_size=1, max_size=2, unique=True))
    row = {"name": name, "resources": {c: draw(st.integers(0, 8)) for c in offered}}
    return optional(
        draw,
        row,
        labels=often(..., {"zone": "a"}, {"zone": "b"}, weight=2),
        schedulable=often(..., False),
        ready=often(..., False),
    )


@st.composite
def model_rows(draw: st.DrawFn, name: str, scopes: Sequence[str], mode: st.SearchStrategy[Any]) -> Document:
    low = draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3]))
    high = draw(st.one_of(st.none(), st.integers(low, low + 4)))
    row = {"name": name, "min_replicas": low, "max_replicas": high, "scale_to_zero": draw(st.booleans())}
    return optional(
        draw, row,
        scope=st.sampled_from([..., None, *scopes, *scopes]),
        mode=mode,
        priority=often(..., 1, -1, weight=2),
        held_requests=st.one_of(*[often(0, 1, 3, 9, 30, 60)] * 8, st.sampled_from((None, *NONSENSE))),
        last_arrival_at=st.one_of(st.just(...), edges(60, 120, 200, 600)),
        woken_at=often(..., moment(120), moment(121), moment(200), moment(601), weight=4),
        last_change_at=often(..., moment(0), moment(60), moment(299), moment(300), moment(-9), weight=4),
        demand_peak=often(..., 0, 2, 7, 14, 50, -1, 2.5, weight=20),
        demand_seconds=often(..., 59, 60, 299, 300),
        short_since=often(..., moment(60), moment(3)),
        down_window_seconds=often(..., 60, 600),
        scale_down_fraction=often(..., "0.5"),
    )  # fmt: skip


@st.composite
def profile_rows(draw: st.DrawFn, model: str, name: str) -> Document:
    row = {"model": model, "name": name, "resource": draw(st.sampled_from(CLASSES)), "units": draw(st.integers(1, 3))}
    return optional(
        draw, row,
        hosts=often(..., 2, weight=8),
        priority=often(..., 1, -1),
        state=often(..., "no_new", "retire", "active", weight=5),
        start_timeout_seconds=often(..., 1200),
        selector=often(..., {"zone": "a"}, weight=5),
    )  # fmt: skip


@st.composite
def measurement_rows(draw: st.DrawFn, profile: Document) -> Document:
    row = {
        "model": profile["model"],
        "profile": profile["name"],
        "max_concurrency": draw(st.sampled_from([0, 1, 2, 4, 4, 10, 10])),
        "tokens_per_second": draw(st.sampled_from([100, 300, 0.3, 0.1, 4400.5])),
    }
    return optional(draw, row, status=often(..., "current", "stale", "assumed", weight=5))


@st.composite
def replica_rows(
    draw: st.DrawFn, name: str, profile: Document, concurrency: int, nodes: Sequence[str], models: Sequence[str]
) -> Document:
    state = draw(st.sampled_from(["ready"] * 6 + ["starting"] * 2 + ["unready", "draining", "draining"]))
    hosts = profile.get("hosts", 1)
    places = draw(st.lists(st.sampled_from([*nodes, *nodes, "gone"]), min_size=hosts, max_size=hosts, unique=True))
    if state == "starting" and draw(often(False, True, weight=2)):
        places = []
    row = {"name": name, "model": profile["model"], "profile": profile["name"], "nodes": places, "state": state}
    row["since"] = draw(st.one_of(st.just(moment(20)), st.just(moment(20)), edges(30, 120), edges(300, 900, 1200)))
    loads = {0, 1, concurrency // 2, max(0, concurrency * 7 // 10 - 1), concurrency, concurrency + 1}
    row["in_flight"] = draw(st.sampled_from(sorted(loads) * 8 + [None, draw(st.sampled_from(NONSENSE))]))
    keys: Document = {"removable": often(..., False, weight=8), "sampled_at": often(..., *stale_edges(), weight=40)}
    keys["outdated"] = often(..., True, weight=8)
    if state == "draining":
        others = [m for m in models if m != profile["model"]]
        keys["drained_for"] = often(..., *others, weight=8)
        keys["drain_reason"] = often(..., "start_timeout", "rest_under_threshold", weight=4)
    return optional(draw, row, **keys)


def stale_edges() -> list[str]:
    return [moment(age) for age in (10, 11, 45, 46, -45, -46)]


@st.composite
def backoff_rows(draw: st.DrawFn, profiles: Sequence[Document], nodes: Sequence[str]) -> list[Document]:
    key = st.tuples(st.integers(0, len(profiles) - 1), st.sampled_from([*nodes, "gone"]))
    drawn = draw(st.lists(key, max_size=2, unique=True))
    return [
        {"model": profiles[i]["model"], "profile": profiles[i]["name"], "node": node, "until": draw(edges(-30, 0))}
        for i, node in drawn
    ]


@st.composite
def scope_rows(draw: st.DrawFn) -> list[Document]:
    """Forests, diamonds, a self parent, a cycle, a parent that does not exist."""
    names = [f"s{i}" for i in range(draw(st.integers(0, 4)))]
    rows = []
    for i, name in enumerate(names):
        above = draw(st.lists(st.sampled_from(names[:i] * 6 + names + ["ghost"]), max_size=2, unique=True))
        row: Document = {"name": name, "parents": above}
        rows.append(optional(draw, row, funding_parent=st.sampled_from([..., *above])))
    return rows


@st.composite
def quota_rows(draw: st.DrawFn, scopes: Sequence[str], models: Sequence[str], guarantees: bool) -> list[Document]:
    if not scopes:
        return []
    key = st.tuples(st.sampled_from(scopes), st.sampled_from([*TARGETS, *(f"model:{m}" for m in models)]))
    rows = []
    for scope, target in draw(st.lists(key, max_size=5, unique=True)):
        row = {"scope": scope, "target": target, "limit": draw(st.one_of(st.none(), st.integers(0, 8)))}
        owed = st.integers(0, 6) if guarantees and not target.startswith("model:") else often(..., None)
        rows.append(optional(draw, row, guarantee=owed, weight=often(..., 2, 0), lowered_at=often(..., moment(299), moment(300))))
    return rows


MODES = often(..., "auto", "advise", "add_only", "paused", weight=5)
NULLS = often("", "replicas", "nodes", "measurements", "quotas", "scopes", weight=14)


@st.composite
def snapshots(
    draw: st.DrawFn,
    *,
    max_models: int = 3,
    max_profiles: int = 3,
    mode: st.SearchStrategy[Any] = MODES,
    null_list: st.SearchStrategy[str] = NULLS,
    guarantees: bool = False,
) -> Document:
    """A valid snapshot. `mode` draws each model's mode (`...` leaves it out), `null_list` the name of a list to lose."""
    nodes = [draw(node_rows(f"n{i}")) for i in range(draw(st.integers(0, 4)))]
    names = [f"m{i}" for i in range(draw(st.integers(1, max_models)))]
    scopes = draw(scope_rows())
    models = [draw(model_rows(name, [s["name"] for s in scopes], mode)) for name in names]
    profiles = [draw(profile_rows(m, f"p{i}")) for m in names for i in range(draw(often(1, 0, 2, max_profiles, weight=4)))]
    measurements = [draw(measurement_rows(p)) for p in profiles if draw(often(True, False))]
    document: Document = {
        "format": "llmgw.snapshot/1", "at": moment(0), "settings": draw(settings_rows()), "nodes": nodes, "models": models,
        "profiles": profiles, "measurements": measurements, "replicas": draw(replica_lists(profiles, measurements, nodes, names)),
        "backoffs": draw(backoff_rows(profiles, [n["name"] for n in nodes])) if profiles else [], "scopes": scopes,
        "quotas": draw(quota_rows([s["name"] for s in scopes], names, guarantees)),
    }  # fmt: skip
    lost = draw(null_list)
    return document | ({lost: None} if lost else {}) | ({"quotas": None} if lost == "scopes" else {})


@st.composite
def replica_lists(
    draw: st.DrawFn,
    profiles: Sequence[Document],
    measurements: Sequence[Document],
    nodes: Sequence[Document],
    models: Sequence[str],
) -> list[Document]:
    measured = {(m["model"], m["profile"]): m["max_concurrency"] for m in measurements}
    rows = []
    for profile in profiles:
        for i in range(draw(st.integers(0, 4))):
            name = f"{profile['model']}-{profile['name']}-{i}"
            concurrency = measured.get((profile["model"], profile["name"]), 4)
            rows.append(draw(replica_rows(name, profile, concurrency, [n["name"] for n in nodes] or ["gone2"], models)))
    return rows


@st.composite
def calm_snapshots(draw: st.DrawFn, *, max_models: int = 2, max_profiles: int = 3) -> Document:
    """Much capacity and little load: snapshots in which removals, evacuations and idle ends are at stake."""
    mode, nothing_lost = often(..., "add_only"), st.just("")
    document = draw(snapshots(max_models=max_models, max_profiles=max_profiles, mode=mode, null_list=nothing_lost))
    for model in document["models"]:
        model["min_replicas"] = draw(st.sampled_from([0, 1, 1, 2]))
        model["max_replicas"] = draw(st.sampled_from([None, None, 2, 5]))
        model["held_requests"] = 0
        for key in ("demand_peak", "demand_seconds", "last_change_at"):
            if draw(often(True, False)):
                model.pop(key, None)
    loads = draw(st.sampled_from([(0, 0, 1, 2), (0,), (1, 4, 9), (2, 2, 6)]))
    for row in document["measurements"]:
        if draw(often(False, True, weight=1)):
            row |= {"max_concurrency": 10, "status": "current"}
    for replica in document["replicas"]:
        if draw(often(True, False)):
            for key in ("drained_for", "drain_reason", "sampled_at"):
                replica.pop(key, None)
            replica |= {"state": "ready", "in_flight": draw(st.sampled_from(loads)), "nodes": replica["nodes"] or ["gone"]}
    return document


@st.composite
def busy_snapshots(draw: st.DrawFn, *, max_models: int = 3, max_profiles: int = 2, guarantees: bool = False) -> Document:
    """More demand than capacity, some room and tight limits: snapshots in which starts, undrains and their order are at stake."""
    document = draw(snapshots(max_models=max_models, max_profiles=max_profiles, null_list=st.just(""), guarantees=guarantees))
    document["nodes"] = [
        {"name": f"n{i}", "resources": {c: draw(st.integers(1, 8)) for c in CLASSES[:2]}, "labels": {"zone": "ab"[i]}}
        for i in range(2)
    ]
    document["scopes"] = [
        {"name": "s0", "parents": []},
        {"name": "s1", "parents": ["s0"]},
        {"name": "s2", "parents": ["s0", "s1"]},
    ]
    names = [m["name"] for m in document["models"]]
    document["quotas"] = draw(quota_rows(["s0", "s1", "s2"], names, guarantees))
    for model in document["models"]:
        low = draw(st.sampled_from([0, 0, 1, 3]))
        model |= {"scope": draw(often("s2", "s1", "s0", None, weight=2)), "min_replicas": low}
        held = sum(r["model"] == model["name"] for r in document["replicas"])
        high = [max(low, held + more) for more in (-1, 0, 1, 3)]
        model |= {"max_replicas": draw(often(None, *high, weight=3)), "held_requests": draw(st.sampled_from([0, 3, 12, 25]))}
    for profile in document["profiles"]:
        profile |= {"resource": draw(st.sampled_from(CLASSES[:2])), "state": draw(often("active", "no_new", weight=12))}
        profile["selector"] = draw(often({}, {"zone": "b"}))
    for backoff in document["backoffs"]:
        backoff["node"] = draw(st.sampled_from(["n0", "n1"]))
    for i, replica in enumerate(document["replicas"]):
        replica["nodes"] = [f"n{(i + host) % 2}" for host in range(len(replica["nodes"]))]
        if replica["state"] != "draining" and draw(often(True, False)):
            replica |= {"state": "ready", "in_flight": draw(st.sampled_from([0, 4, 10, 13]))}
    unique = {(b["model"], b["profile"], b["node"]): b for b in document["backoffs"]}
    return document | {"backoffs": list(unique.values())}
