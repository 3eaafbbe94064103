"""What holds of every sizing, over drawn fleets; and that it is the plan's own code that places."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from capacity.domain import parse_snapshot, plan
from capacity.domain.sizing import Answer, question_of, target, target_document
from capacity.domain.sizing.types import MissingUnits
from capacity.domain.types import Node, Replica, Snapshot
from capacity.tests.builders import ago, snapshot
from capacity.tests.strategies import examples

CLASSES = ("gpu/h100", "gpu/a100")


@st.composite
def fleets(draw: st.DrawFn) -> dict[str, Any]:
    """A model `chat` with up to four profiles, what others hold, limits of two scopes, and a node or four."""
    profiles, measurements = [], []
    for number in range(draw(st.integers(1, 4))):
        name = f"p{number}"
        row = {"model": "chat", "name": name, "resource": draw(st.sampled_from(CLASSES)), "units": draw(st.integers(1, 4))}
        row |= {"priority": draw(st.integers(0, 1)), "hosts": draw(st.sampled_from((1, 1, 1, 2)))}
        profiles.append(row)
        if draw(st.integers(0, 5)):
            c, t = draw(st.integers(0, 40)), draw(st.integers(1, 900))
            measurements.append({"model": "chat", "profile": name, "max_concurrency": c, "tokens_per_second": t})
    nodes = [
        {"name": f"n{n}", "resources": {c: draw(st.integers(0, 8)) for c in CLASSES}, "schedulable": draw(st.integers(0, 6)) > 0}
        for n in range(draw(st.integers(1, 4)))
    ]
    other = {"model": "other", "name": "one", "resource": "gpu/h100", "units": 1}
    replicas = [
        {
            "name": f"o{n}",
            "model": "other",
            "profile": "one",
            "nodes": [f"n{draw(st.integers(0, len(nodes) - 1))}"],
            "state": "ready",
        }
        for n in range(draw(st.integers(0, 4)))
    ]
    for n in range(draw(st.integers(0, 3))):
        chosen = draw(st.sampled_from(profiles))
        if chosen["hosts"] == 1:
            state = draw(st.sampled_from(("ready", "ready", "starting", "draining")))
            at = f"n{draw(st.integers(0, len(nodes) - 1))}"
            row = {"name": f"c{n}", "model": "chat", "profile": chosen["name"], "nodes": [at], "state": state, "since": ago(30)}
            replicas.append(row | {"in_flight": 0})
    quotas = [
        {"scope": scope, "target": where, "limit": draw(st.integers(0, 20))}
        for scope, where in draw(
            st.lists(st.sampled_from([(s, c) for s in ("org", "team") for c in (*CLASSES, "gpu")]), unique=True, max_size=3)
        )
    ]
    return snapshot(
        nodes=nodes,
        models=[
            {"name": "chat", "scope": "team", "min_replicas": 0, "max_replicas": draw(st.sampled_from((None, None, 3, 8)))},
            {"name": "other", "scope": "org"},
        ],
        profiles=[*profiles, other],
        measurements=measurements,
        replicas=replicas,
        scopes=[{"name": "org", "parents": []}, {"name": "team", "parents": ["org"]}],
        quotas=quotas,
    )


DEMANDS = st.one_of(
    st.builds(lambda n: {"in_flight": n}, st.integers(1, 300)),
    st.builds(lambda n: {"tokens_per_second": n}, st.integers(1, 6000)),
)


def ask(document: dict[str, Any] | Snapshot, **words: Any) -> Answer:
    found = document if isinstance(document, Snapshot) else parse_snapshot(document)
    return target(found, "chat", question_of(words))


@examples(60)
@given(fleets(), DEMANDS, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(document: dict[str, Any], demand: dict[str, Any], chance: random.Random) -> None:
    before = target_document(ask(document, **demand, tight=True))
    mixed = {key: chance.sample(rows, len(rows)) if isinstance(rows, list) else rows for key, rows in document.items()}
    assert target_document(ask(mixed, **demand, tight=True)) == before


@examples(80)
@given(fleets(), DEMANDS, st.integers(0, 2))
def test_it_passes_no_node_no_limit_and_no_maximum(document: dict[str, Any], demand: dict[str, Any], spare: int) -> None:
    answer = ask(document, **demand, spare=spare)
    profiles = {(row["model"], row["name"]): row for row in document["profiles"]}
    held: Counter[tuple[str, str]] = Counter()
    for replica in document["replicas"]:
        row = profiles[replica["model"], replica["profile"]]
        for node in replica["nodes"]:
            held[node, row["resource"]] += row["units"]
    before = dict(held)
    for row in answer.rows:
        assert len(row.nodes) == row.add
        for nodes in row.nodes:
            assert len(set(nodes)) == row.hosts
            for node in nodes:
                held[node, row.resource] += row.units_each // row.hosts
    offered = {(node["name"], c): units for node in document["nodes"] for c, units in node["resources"].items()}
    taking = {node["name"] for node in document["nodes"] if node["schedulable"]}
    for place, units in held.items():
        if units > before.get(place, 0):
            assert units <= offered[place] and place[0] in taking
    for limit in answer.path:
        assert limit.used <= limit.after and (limit.after == limit.used or limit.after <= limit.limit)
    most = document["models"][0]["max_replicas"]
    mine = sum(1 for replica in document["replicas"] if replica["model"] == "chat")
    assert most is None or not answer.added or mine + answer.added <= most


@examples(80)
@given(fleets(), DEMANDS, st.sampled_from(("0%", "10%", "50%")), st.integers(0, 1))
def test_more_demand_serves_no_less_and_it_fits_where_all_is_covered(
    document: dict[str, Any], demand: dict[str, Any], headroom: str, spare: int
) -> None:
    answer = ask(document, **demand, headroom=headroom, spare=spare)
    more = ask(document, **{key: amount * 2 for key, amount in demand.items()}, headroom=headroom, spare=spare)
    roomier = ask(document, **demand, headroom="60%", spare=spare)
    assert more.served >= answer.served
    assert roomier.added >= answer.added
    covered = answer.served >= answer.question.wanted
    assert covered or answer.verdict != "fits"
    if not spare:
        assert (answer.verdict == "fits") == covered
    assert answer.binding or answer.verdict == "fits"
    assert 0 <= answer.share <= 1
    assert answer.share == min(Fraction(1), answer.served / answer.question.amount)


@examples(80)
@given(fleets(), DEMANDS)
def test_what_is_missing_makes_it_fit_once_it_is_there(document: dict[str, Any], demand: dict[str, Any]) -> None:
    """Of one profile alone: with several, the first takes what a lower one had, and more may be missing then."""
    document = {**document, "models": [{**row, "max_replicas": None} for row in document["models"]]}
    for name in (row["name"] for row in document["profiles"] if row["model"] == "chat"):
        answer = ask(document, **demand, profile=name)
        if answer.verdict in ("partial", "none") and answer.missing:
            assert ask(supplied(parse_snapshot(document), answer), **demand, profile=name).verdict == "fits"


def supplied(found: Snapshot, answer: Answer) -> Snapshot:
    """The snapshot with the missing units on new nodes, and with the limits raised."""
    nodes = list(found.nodes or ())
    for row in answer.missing:
        if isinstance(row, MissingUnits):
            count = row.units // row.on_one_node
            nodes += [Node(name=f"new{n}", resources={row.resource: row.on_one_node}) for n in range(count)]
    raised = {(row.scope, row.target): row.limit for row in answer.missing if not isinstance(row, MissingUnits)}
    quotas = [
        replace(row, limit=(row.limit or 0) + raised.get((row.scope, row.target), 0)) if row.limit is not None else row
        for row in found.quotas or ()
    ]
    return replace(found, nodes=tuple(nodes), quotas=tuple(quotas))


@examples(80)
@given(fleets(), st.integers(1, 300))
def test_the_plan_starts_the_same_replicas_for_the_same_demand(document: dict[str, Any], demand: int) -> None:
    """A ready replica of its own carries the demand, so that the plan adds for load; the step limit is out of the way."""
    found = carrying(parse_snapshot(document), demand)
    answer = target(found, "chat", question_of({"in_flight": demand}))
    started = Counter((a.profile, a.nodes) for a in plan(found).actions if a.model == "chat" and a.op == "start")
    assert started == Counter((row.profile, nodes) for row in answer.rows for nodes in row.nodes)


def carrying(found: Snapshot, demand: int) -> Snapshot:
    """Only `chat`, nothing of it draining, and one replica of it that has all of the demand."""
    first = next(row for row in found.profiles if row.model == "chat")
    kept = [row for row in found.replicas or () if row.model == "other" or row.state == "starting"]
    one = Replica(
        name="carries", model="chat", profile=first.name, nodes=("gone",) * first.hosts, state="ready", in_flight=demand
    )
    measured = {row.profile for row in found.measurements or () if row.model == "chat"}
    if first.name not in measured:
        # an unmeasured one counts its own load for the plan, and nothing for a sizing
        one = replace(one, in_flight=0)
        held = demand
    else:
        held = 0
    models = tuple(
        replace(row, held_requests=held) if row.name == "chat" else replace(row, mode="paused") for row in found.models
    )
    settings = replace(found.settings, max_step_up=10**6)
    return replace(found, models=models, replicas=(*kept, one), settings=settings)
