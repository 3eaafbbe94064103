"""Workers and beats that are killed, and too many of them: no replica twice, none lost, one pass at a time."""

from __future__ import annotations

from .rows import POOL
from .site import LiveSite, until

GENERATIONS = "SELECT p.generation FROM capacity_pass p JOIN quotas_pool q ON q.id = p.pool_id WHERE q.name = ? ORDER BY p.id"


def generations(site: LiveSite) -> list[int]:
    return [row[0] for row in site.ask(GENERATIONS, POOL)]


def started(site: LiveSite) -> list[str]:
    return [row[0] for row in site.ask("SELECT replica_name FROM capacity_action WHERE op = 'start'")]


def test_a_worker_that_is_killed_again_and_again_starts_no_replica_twice_and_loses_none(site: LiveSite) -> None:
    (first,) = site.wait_for(1)
    before = started(site)
    for least in (2, 3, 4):
        site.bounds("chat", least, 4)
        # as soon as the start is written down: it is perhaps sent, and perhaps not
        until(lambda least=least: len(started(site)) >= len(before) + least - 1, lambda: site.log("worker")[-1000:])
        site.kill("worker")
        site.start("worker")
    names = site.wait_for(4)
    site.more_passes(3)
    assert site.wait_for(4) == names
    assert first in names
    new = started(site)[len(before) :]
    assert sorted([first, *new]) == names, "each start is one engine, and each engine is one start"


def test_two_workers_and_two_beats_make_one_pass_at_a_time_and_start_nothing_twice(site: LiveSite) -> None:
    before = started(site)
    site.start("worker-2", "beat-2")
    until(lambda: " ready" in site.log("worker-2"), lambda: site.log("worker-2")[-1000:])
    site.bounds("chat", 3, 4)
    site.rows("burst")
    site.wait_for(3)
    site.more_passes(10)
    site.wait_for(3)
    seen = generations(site)
    assert seen == sorted(set(seen)), "generations rise strictly: no two passes had the same turn"
    holders = {"worker", "worker-2"}
    assert {name for name in holders if '"event": "pass"' in site.log(name)} == holders, "both of them made passes"
    assert len(started(site)) == len(before) + 2
