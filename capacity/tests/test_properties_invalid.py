"""An invalid snapshot never yields a partial plan (reconciler.md, Property 12), and no JSON at all makes planning crash."""

import json
from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from capacity.domain import InvalidSnapshot, plan_json
from capacity.tests.plan_checker import violations
from capacity.tests.strategies import Document, examples, moment, snapshots

LISTS = ("nodes", "models", "profiles", "measurements", "replicas", "backoffs", "scopes", "quotas")
SCALARS = (
    None, True, False, 0, 1, -1, 3.0, 2.5, 10**12, 10**12 + 1, 1e300, float("nan"), float("inf"), -0.0, Decimal("0.1"),
    "", "m0", "gpu", "model:m0", "2026-11-30T12:00:00Z", "2026-13-01T00:00:00Z", "0.7", "1/0", "\ud800", "\x00",
    [], {}, [None], {"a": 1}, [[[]]],
)  # fmt: skip


def resolves(node: Any, path: str) -> bool:
    """Does a fault's path (`a[0].b`, or `a["odd key"]`) lead to a place of the document; the last key may be a missing one."""
    path = path.removeprefix("$")
    if not path:
        return True
    if path.startswith("["):
        index, _, rest = path[1:].partition("]")
        if index.isdigit():
            return isinstance(node, list) and int(index) < len(node) and resolves(node[int(index)], rest)
        key, end = json.JSONDecoder().raw_decode(path, 1)
        return isinstance(node, dict) and (key not in node or resolves(node[key], path[end + 1 :]))
    path = path.removeprefix(".")
    if not isinstance(node, dict):
        return False
    for key in node:
        if path.startswith(str(key)) and resolves(node[key], path[len(str(key)) :]):
            return True
    return "." not in path and "[" not in path


def faults_of(document: object) -> list[Any]:
    with pytest.raises(InvalidSnapshot) as caught:
        plan_json(document)  # type: ignore[arg-type]
    return list(caught.value.faults)


Breaking = tuple[str, Callable[[Document], Any], str]

BREAKINGS: list[Breaking] = [
    ("an unknown key at the top", lambda d: d.update(setings={}), "setings"),
    ("an unknown key of a model", lambda d: d["models"][0].update(max_replica=3), "models[0].max_replica"),
    ("an unknown setting", lambda d: d["settings"].update(theta="0.7"), "settings.theta"),
    ("no format", lambda d: d.pop("format"), "format"),
    ("another format", lambda d: d.update(format="llmgw.snapshot/2"), "format"),
    ("no instant", lambda d: d.pop("at"), "at"),
    ("an instant that is no time", lambda d: d.update(at="yesterday"), "at"),
    ("a model without a name", lambda d: d["models"][0].pop("name"), "models[0].name"),
    ("a minimum over the maximum", lambda d: d["models"][0].update(min_replicas=4, max_replicas=2), "models[0].max_replicas"),
    ("a negative bound", lambda d: d["models"][0].update(min_replicas=-1), "models[0].min_replicas"),
    ("half a replica", lambda d: d["models"][0].update(max_replicas=2.5), "models[0].max_replicas"),
    ("a bound past the largest", lambda d: d["models"][0].update(max_replicas=10**12 + 1), "models[0].max_replicas"),
    ("an unknown mode", lambda d: d["models"][0].update(mode="manual"), "models[0].mode"),
    ("a scope that does not exist", lambda d: d["models"][0].update(scope="nobody"), "models[0].scope"),
    ("a model twice", lambda d: d["models"].insert(0, deepcopy(d["models"][0])), "models[1]"),
    ("a node twice", lambda d: d["nodes"].insert(0, deepcopy(d["nodes"][0])), "nodes[1]"),
    ("a profile twice", lambda d: d["profiles"].insert(0, deepcopy(d["profiles"][0])), "profiles[1]"),
    ("a replica twice", lambda d: d["replicas"].insert(0, deepcopy(d["replicas"][0])), "replicas[1]"),
    ("a scope twice", lambda d: d["scopes"].insert(0, deepcopy(d["scopes"][0])), "scopes[1]"),
    ("a profile of no model", lambda d: d["profiles"][0].update(model="nobody"), "profiles[0].model"),
    ("a profile without units", lambda d: d["profiles"][0].pop("units"), "profiles[0].units"),
    ("a replica of no profile", lambda d: d["replicas"][0].update(profile="none"), "replicas[0].profile"),
    ("a state that is none", lambda d: d["replicas"][0].update(state="running"), "replicas[0].state"),
    ("a start without since", lambda d: d["replicas"][0].update(state="starting", since=None), "replicas[0].since"),
    ("no nodes of a replica", lambda d: d["replicas"][0].pop("nodes"), "replicas[0].nodes"),
    ("drained for nobody", lambda d: d["replicas"][0].update(state="draining", drained_for="x"), "replicas[0].drained_for"),
    ("a measurement below zero", lambda d: add_measurement(d, max_concurrency=-1), "measurements[0].max_concurrency"),
    ("a measurement of text", lambda d: add_measurement(d, tokens_per_second="fast"), "measurements[0].tokens_per_second"),
    ("a parent twice", lambda d: d["scopes"][0].update(parents=["x", "x"]), "scopes[0].parents"),
    ("a funding parent that is none", lambda d: d["scopes"][0].update(funding_parent="x"), "scopes[0].funding_parent"),
    ("a guarantee in replicas", lambda d: add_quota(d, target="model:m0", guarantee=1), "quotas[0].guarantee"),
    ("a limit on a model that does not exist", lambda d: add_quota(d, target="model:none", limit=1), "quotas[0].target"),
    ("a limit below zero", lambda d: add_quota(d, target="gpu", limit=-1), "quotas[0].limit"),
    ("a fraction that is a number", lambda d: d["settings"].update(scale_down_fraction=0.7), "settings.scale_down_fraction"),
    ("a wake as long as idle", lambda d: d["settings"].update(wake_seconds=600, idle_seconds=600), "settings.wake_seconds"),
    ("a list that is a table", lambda d: d.update(models={}), "models"),
]  # fmt: skip


def add_measurement(document: Document, **values: Any) -> None:
    profile = document["profiles"][0]
    row = {"model": profile["model"], "profile": profile["name"], "max_concurrency": 4, "tokens_per_second": 100}
    document["measurements"] = [row | values]


def add_quota(document: Document, **values: Any) -> None:
    document["quotas"].insert(0, {"scope": document["scopes"][0]["name"], **values})


def complete(document: Document) -> bool:
    """Every list has a row to break."""
    return all(document[key] for key in ("nodes", "models", "profiles", "replicas", "scopes")) and not document["quotas"]


def small_snapshot() -> Document:
    return {
        "format": "llmgw.snapshot/1", "at": moment(0), "settings": {}, "nodes": [{"name": "n0", "resources": {"gpu/h100": 4}}],
        "models": [{"name": "m0", "scope": "s0"}], "measurements": [], "backoffs": [], "quotas": [],
        "profiles": [{"model": "m0", "name": "p0", "resource": "gpu/h100", "units": 1}],
        "replicas": [{"name": "r0", "model": "m0", "profile": "p0", "nodes": ["n0"], "state": "ready", "in_flight": 1}],
        "scopes": [{"name": "s0", "parents": []}],
    }  # fmt: skip


@pytest.mark.parametrize(("breaking", "path"), [b[1:] for b in BREAKINGS], ids=[b[0] for b in BREAKINGS])
def test_a_broken_row_is_refused_by_its_path(breaking: Callable[[Document], Any], path: str) -> None:
    document = small_snapshot()
    assert plan_json(document)["decisions"]
    breaking(document)
    faults = faults_of(document)
    assert any(fault.path.startswith(path) for fault in faults), faults
    assert all(resolves(document, fault.path) and fault.message for fault in faults)


@examples(40)
@given(
    snapshots(max_models=2, null_list=st.just("")).filter(complete),
    st.lists(st.sampled_from(BREAKINGS), min_size=1, max_size=3, unique_by=lambda b: b[2]),
)
def test_an_invalid_snapshot_never_yields_a_partial_plan(snapshot: Document, breakings: list[Breaking]) -> None:
    for _, breaking, _ in breakings:
        try:
            breaking(snapshot)
        except (KeyError, IndexError, AttributeError):
            assume(False)
    assert all(resolves(snapshot, fault.path) for fault in faults_of(snapshot))


ANY_JSON = st.recursive(
    st.one_of(st.sampled_from(SCALARS), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document, outermost first."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [place for key in keys for place in places(node[key])]


@st.composite
def mutated(draw: st.DrawFn) -> Document:
    """A valid snapshot in which one to three places hold something else, or nothing, or a copy of their neighbour."""
    document = draw(snapshots(max_models=2, max_profiles=2))
    for _ in range(draw(st.integers(1, 3))):
        container, key = draw(st.sampled_from(places(document)))
        kind = draw(st.sampled_from(["replace", "replace", "delete", "add", "copy"]))
        if kind == "delete":
            del container[key]
        elif kind == "replace":
            container[key] = draw(ANY_JSON)
        elif isinstance(container, list):
            container.append(deepcopy(container[key]) if kind == "copy" else draw(ANY_JSON))
        else:
            container[draw(st.one_of(st.sampled_from(sorted(map(str, container))), st.text(max_size=4)))] = draw(ANY_JSON)
    return document


@examples(300)
@given(mutated())
def test_a_mutated_snapshot_is_planned_by_the_rules_or_refused_by_paths_that_exist(document: Document) -> None:
    before = deepcopy(document)
    try:
        plan = plan_json(document)
    except InvalidSnapshot as invalid:
        assert invalid.faults
        for fault in invalid.faults:
            assert resolves(before, fault.path), f"{fault.path} leads nowhere: {fault.message}"
            assert isinstance(fault.message, str) and fault.message and "\n" not in fault.message
        return
    found = violations(before, plan)
    assert not found, "\n".join([*found, json.dumps(before, default=str)])


@examples(60)
@given(ANY_JSON)
def test_what_is_no_snapshot_at_all_is_refused(document: object) -> None:
    assert all(resolves(document, fault.path) for fault in faults_of(document))


@pytest.mark.parametrize("key", LISTS)
def test_an_absent_list_is_an_empty_one(key: str) -> None:
    document = small_snapshot()
    for other in ("replicas", "profiles", "scopes") if key in ("profiles", "scopes", "models") else ():
        document[other] = []
    document["models"][0].pop("scope")
    if key == "models":
        document["models"] = []
    absent = {k: v for k, v in document.items() if k != key}
    assert plan_json(absent) == plan_json(document | {key: []})
