"""A removal on probation, with engines that count their own latencies: what was measured too well is found out."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from .rows import CAPACITY
from .site import LiveSite, until

CHAT = "(SELECT id FROM capacity_languagemodel WHERE name = 'chat')"
WINDOW = 8
TOO_MANY = 40  # what one engine is said to serve; it serves CAPACITY
SLO_MS = 75  # per token; up to its capacity an engine takes 50


@pytest.fixture
def optimistic(site: LiveSite) -> Iterator[LiveSite]:
    """Two engines whose measurement promises far more than they serve, and an SLO that tells."""
    measured = f"profile_id IN (SELECT id FROM capacity_profile WHERE model_id = {CHAT})"
    site.ask(
        "INSERT INTO capacity_slo (name, tpot_percentile, tpot_ms, max_error_share) VALUES ('tokens', 95, ?, '0.01')", SLO_MS
    )
    site.ask(
        f"UPDATE capacity_languagemodel SET down_window_seconds = ?, slo_id = (SELECT id FROM capacity_slo) WHERE id = {CHAT}",
        WINDOW,
    )
    site.ask(f"UPDATE capacity_measurement SET max_concurrency = ? WHERE {measured}", TOO_MANY)
    site.forget_views()
    try:
        yield site
    finally:
        site.ask(f"UPDATE capacity_measurement SET max_concurrency = ? WHERE {measured}", CAPACITY)
        site.ask(
            "UPDATE capacity_languagemodel SET down_window_seconds = NULL, slo_id = NULL, removals_rest_until = NULL, "
            f"probation = '{{}}' WHERE id = {CHAT}"
        )
        site.ask("DELETE FROM capacity_slo WHERE name = 'tokens'")
        site.forget_views()


def watch_of(site: LiveSite) -> dict:
    return json.loads(site.one(f"SELECT probation FROM capacity_languagemodel WHERE id = {CHAT}"))


def test_a_model_that_misses_its_slo_after_a_removal_gets_the_replica_back_and_removals_rest(optimistic: LiveSite) -> None:
    site = optimistic
    site.bounds("chat", 2, 4)
    first, second = site.wait_for(2)
    with site.requests(first, CAPACITY), site.requests(second, CAPACITY):
        site.bounds("chat", 1, 4)
        until(lambda: watch_of(site).get("replica") in {first, second}, site.story)  # not that of an earlier removal
        watch = watch_of(site)
        (left,) = {first, second} - {watch["replica"]}
        assert (watch["floor"], set(watch["base"])) == (2, {first, second})
        assert {latency for rows in watch["base"].values() for latency in rows} >= {"tpot"}
        with site.requests(left, 3 * CAPACITY):
            until(lambda: watch_of(site)["result"], site.story)
        assert watch_of(site)["result"] == "failed", watch_of(site)
        (kind, percentile, bound, quick, count) = watch_of(site)["attained"][0]
        assert (kind, percentile, bound) == ("tpot", 95, SLO_MS)
        assert 100 * quick < percentile * count
    # without any load one would go at once: it does not
    site.wait_for(2)
    site.more_passes(2 * WINDOW)
    site.wait_for(2)
    (problems,) = site.ask("SELECT problems FROM capacity_pass ORDER BY id DESC LIMIT 1")[0]
    assert "removals_rest" in {problem["code"] for problem in json.loads(problems)}
    assert site.why("chat")[0][1] == "at_min"
    assert site.manage("end_rest", "chat", "--reason", "it was the test's own load") == "Removals of chat may go on."
    site.wait_for(1)
