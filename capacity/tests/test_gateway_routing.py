"""Where the gateway sends, what it holds, what it pushes."""

from __future__ import annotations

import asyncio

import pytest

from capacity.gateway import routing
from capacity.gateway.routing import Endpoint, Endpoints, Router, parse_endpoints, pick
from capacity.sources.push_document import parse_push
from capacity.tests.test_sources_gateway import NOW


def endpoint(replica: str, weight: int = 8, model: str = "m") -> Endpoint:
    return Endpoint(replica=replica, model=model, url=f"http://h/{replica}", weight=weight)


def known(*endpoints: Endpoint) -> Endpoints:
    return Endpoints(endpoints=endpoints, names={"m": "m"})


@pytest.mark.parametrize(
    ("rule", "weights", "in_flight", "picked"),
    [
        ("none where there is none", {}, {}, None),
        ("the least in flight for its weight", {"a": 8, "b": 4}, {"a": 5, "b": 2}, "b"),
        ("not the least in flight", {"a": 8, "b": 2}, {"a": 3, "b": 1}, "a"),
        ("the heaviest of equals", {"a": 4, "b": 8}, {}, "b"),
        ("the first by name of equals in all", {"b": 8, "a": 8}, {}, "a"),
        ("beyond its weight too: nothing is held that has a replica", {"a": 2}, {"a": 9}, "a"),
        ("weight 0 last", {"a": 0, "b": 1}, {"b": 99}, "b"),
        ("weight 0 where there is no other", {"a": 0}, {}, "a"),
    ],
)
def test_a_request_goes_to(rule, weights, in_flight, picked):
    found = pick([endpoint(name, weight) for name, weight in weights.items()], in_flight)
    assert (found.replica if found else None) == picked


def test_a_replica_that_was_tried_is_not_tried_again():
    assert pick([endpoint("a"), endpoint("b")], {"b": 7}, tried=("a",)) == endpoint("b")
    assert pick([endpoint("a")], {}, tried=("a",)) is None


async def held(router: Router, number: int) -> list[asyncio.Task[Endpoint | None]]:
    """So many requests that wait for a replica."""
    tasks = [asyncio.create_task(router.find("m", ())) for _ in range(number)]
    await asyncio.sleep(0)
    assert router.held["m"] == number
    return tasks


def test_a_request_without_a_replica_is_held_until_one_comes():
    async def go() -> tuple[list[Endpoint | None], int]:
        router = Router()
        tasks = await held(router, 3)
        await router.update(known(endpoint("x", model="other")))
        assert router.held["m"] == 3
        await router.update(known(endpoint("a")))
        return list(await asyncio.gather(*tasks)), router.held["m"]

    assert asyncio.run(go()) == ([endpoint("a")] * 3, 0)


def test_no_more_are_held_than_the_bound(monkeypatch):
    monkeypatch.setattr(routing, "MAX_HELD_PER_MODEL", 2)

    async def go() -> tuple[Endpoint | None, int]:
        router = Router()
        tasks = await held(router, 2)
        refused = await router.find("m", ())
        still = router.held["m"]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert router.held["m"] == 0
        return refused, still

    assert asyncio.run(go()) == (None, 2)


def test_a_request_is_held_no_longer_than_its_time(monkeypatch):
    monkeypatch.setattr(routing, "HOLD_SECONDS", 0.01)

    async def go() -> tuple[Endpoint | None, int]:
        router = Router()
        return await router.find("m", ()), router.held["m"]

    assert asyncio.run(go()) == (None, 0)


def test_a_push_names_every_replica_that_is_routed_to_or_still_streams_and_every_model():
    async def go() -> dict[str, object]:
        router = Router()
        await router.update(
            Endpoints(endpoints=(endpoint("a"), endpoint("b")), names={"m": "m", "alias": "m", "asleep": "asleep"})
        )
        router.arrived("m", 7.0)
        with router.sending(endpoint("a")), router.sending(endpoint("gone")), router.sending(endpoint("gone")):
            return router.push_document("g", 9.5)

    document = asyncio.run(go())
    assert document == {
        "source": "g",
        "replicas": {"a": 1, "b": 0, "gone": 2},
        "models": {"asleep": {"held": 0}, "m": {"held": 0, "last_arrival_seconds_ago": 2.5}},
    }
    assert parse_push(document, NOW).replicas == {"a": 1, "b": 0, "gone": 2}


def test_a_replica_is_in_flight_no_longer_when_its_request_fails():
    async def go() -> int:
        router = Router()
        with pytest.raises(OSError, match="gone"), router.sending(endpoint("a")):
            raise OSError("gone")
        return router.in_flight["a"]

    assert asyncio.run(go()) == 0


def test_the_control_plane_s_answer_is_read():
    row = {"replica": "a", "model": "m", "url": "http://h:1/", "weight": 8}
    document = {"endpoints": [row], "models": [{"name": "m", "served_names": ["lora"]}, {"name": "n", "served_names": []}]}
    assert parse_endpoints(document) == Endpoints(
        endpoints=(Endpoint(replica="a", model="m", url="http://h:1", weight=8),), names={"m": "m", "lora": "m", "n": "n"}
    )


@pytest.mark.parametrize("document", [None, [], "x", {}, {"endpoints": None}, {"endpoints": {}}])
def test_an_answer_that_makes_no_sense_is_none(document):
    assert parse_endpoints(document) is None


@pytest.mark.parametrize(
    "row",
    [
        None,
        3,
        {},
        {"replica": "x", "model": "m"},
        {"replica": "x", "model": "m", "url": "ftp://h"},
        {"replica": 1, "model": "m", "url": "http://h"},
    ],
)
def test_a_row_that_makes_no_sense_is_left_out(row):
    good = {"replica": "a", "model": "m", "url": "http://h/a", "weight": 8}
    found = parse_endpoints({"endpoints": [row, good], "models": [row, {"name": "m", "served_names": 3}]})
    assert found == Endpoints(endpoints=(endpoint("a"),), names={"m": "m"})


@pytest.mark.parametrize("weight", [None, "8", 2.5, -1, True])
def test_a_weight_that_makes_no_sense_is_1(weight):
    found = parse_endpoints({"endpoints": [{"replica": "a", "model": "m", "url": "http://h/a", "weight": weight}]})
    assert found is not None
    assert found.endpoints[0].weight == 1
