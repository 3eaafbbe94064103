"""Three hosts of their own addresses, one of them cut off: left alone, replaced when it is lost, adopted when it is back."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping

import pytest

from . import hosts as networks
from .host import Host
from .hosts import Network
from .site import LiveSite, until

WIDE, CHAT = 3, 1
ORDERS = "SELECT op, replica_name FROM capacity_action WHERE state NOT IN ('advice', 'withheld') ORDER BY id"


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    reason = networks.why_not()
    if reason:
        pytest.skip(reason)
    networks.remove_leftovers()
    found = Network(units=(4, 2, 3))
    try:
        found.up()
        yield found
    finally:
        found.down()


@pytest.fixture(scope="module")
def running(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSite]:
    site = LiveSite(tmp_path_factory.mktemp("hosts"), hosts=network.hosts, seed="hosts", address=network.address)
    try:
        site.up()
        yield site
    finally:
        mend(network)  # a worker that waits for an answer of Redis ends only after it
        site.down()


@pytest.fixture
def site(running: LiveSite, network: Network) -> LiveSite:
    """All hosts in reach; three replicas of two units, then one of one unit."""
    mend(network)
    until(lambda: len(nodes(running)) == len(network.hosts), running.story)
    for model, count in (("wide", WIDE), ("chat", CHAT)):
        running.bounds(model, count, count + 1)
        running.wait_for(count, model)
    return running


def mend(network: Network) -> None:
    for host in network.hosts:
        network.mend(host)


def nodes(site: LiveSite) -> set[str]:
    return {name for (name,) in site.ask("SELECT name FROM capacity_node")}


def places(site: LiveSite, model: str) -> dict[str, str]:
    """Replica → the host that it is on, of those that are there."""
    sql = "SELECT r.name, r.nodes ->> 0 FROM capacity_replica r JOIN capacity_languagemodel m ON m.id = r.model_id"
    return dict(site.ask(f"{sql} WHERE m.name = ? AND r.gone_at IS NULL", model))


def problems(site: LiveSite) -> str:
    return str(site.one("SELECT problems FROM capacity_pass ORDER BY id DESC LIMIT 1"))


def engines(site: LiveSite) -> dict[str, int]:
    return site.engines("wide") | site.engines("chat")


def test_replicas_go_where_the_least_is_left_free_and_listen_at_their_hosts_address(site: LiveSite, network: Network) -> None:
    wide, chat = places(site, "wide"), places(site, "chat")
    assert sorted(wide.values()) == ["host-1", "host-2", "host-3"], "two units: 2 of 2, then 2 of 3, then 2 of 4"
    assert list(chat.values()) == ["host-3"], "one unit: the last of 3, not one of the two that are left of 4"
    addresses = {host.name: host.address for host in network.hosts}
    for replica, host in (wide | chat).items():
        assert site.url(replica).startswith(f"http://{addresses[host]}:")
    assert site.endpoints() == {"wide": set(wide), "chat": set(chat)}


def followers(site: LiveSite, before: Mapping[str, int]) -> set[str]:
    return places(site, "wide").keys() - before.keys()


def test_what_a_killed_run_left_behind_is_taken_away_and_a_living_ones_stays(network: Network) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    left = f"llt{ended.pid}-1"
    subprocess.run(["ip", "netns", "add", left], check=True)
    with subprocess.Popen(["ip", "netns", "exec", left, "sleep", "600"]) as engine:
        until(lambda: str(engine.pid) in networks.ip("netns", "pids", left).split())
        networks.remove_leftovers()
        assert engine.wait() == -signal.SIGKILL
    found = networks.ip("netns", "list").split()
    assert left not in found
    assert {host.prefix[-1] for host in network.hosts} <= set(found)


def victim_of(site: LiveSite, network: Network) -> tuple[Host, str]:
    """The host with two units, and the one replica that it has."""
    host = network.hosts[1]
    (replica,) = (name for name, place in places(site, "wide").items() if place == host.name)
    return host, replica


def test_a_host_that_is_cut_off_for_a_while_is_left_alone(site: LiveSite, network: Network) -> None:
    host, _ = victim_of(site, network)
    before, there, ordered = engines(site), places(site, "wide"), site.ask(ORDERS)
    network.cut(host)
    until(lambda: "node_silent" in problems(site), lambda: problems(site))
    until(lambda: site.why("wide")[0][:2] == ("hold", "metrics_unknown"), site.story)
    # as many as are asked for are written down, whatever became of that one
    site.more_passes(3)
    assert places(site, "wide") == there
    assert engines(site) == before
    network.mend(host)
    until(lambda: "node_silent" not in problems(site), lambda: problems(site))
    site.wait_for(WIDE, "wide")
    assert places(site, "wide") == there
    assert engines(site) == before
    assert site.ask(ORDERS) == ordered, "nothing was started, nothing was taken back"


def test_a_host_that_is_lost_is_replaced_and_its_replica_adopted_when_it_is_back(site: LiveSite, network: Network) -> None:
    host, replica = victim_of(site, network)
    before, ordered = engines(site), len(site.ask(ORDERS))
    network.cut(host)
    until(lambda: "node_lost" in problems(site), lambda: problems(site))
    until(lambda: site.replicas("wide").get(replica) == "unready", site.story)
    until(lambda: len(followers(site, before)) == 1, site.story)
    (follower,) = followers(site, before)
    assert until(lambda: site.endpoints()["wide"] == (before.keys() & places(site, "wide").keys() | {follower}) - {replica})
    assert places(site, "wide")[follower] == "host-1", "where the room is"
    assert engines(site).items() > before.items(), "what runs there runs on"
    assert site.ask(ORDERS)[ordered:] == [("start", follower)]
    network.mend(host)
    until(lambda: site.replicas("wide").get(replica) != "unready", site.story)
    # it is one of ours again, by its own name; one too many then goes as any other surplus does
    until(lambda: len(site.ask(ORDERS)) > ordered + 1, site.story)
    assert site.one("SELECT gone_at FROM capacity_replica WHERE name = ?", replica) is None
    ((op, surplus),) = site.ask(ORDERS)[ordered + 1 :]
    assert op == "drain"
    left = (before.keys() | {follower}) - {surplus}
    until(lambda: engines(site).keys() == left, site.story)
    assert set(site.wait_for(WIDE, "wide")) | set(places(site, "chat")) == left
    assert {name: pid for name, pid in engines(site).items() if name in before} == {
        name: pid for name, pid in before.items() if name in left
    }, "nothing else was touched"
