"""The main job on real processes: engines that are started, watched, replaced and taken back by what they serve."""

from __future__ import annotations

import os
import signal

from .rows import CAPACITY
from .site import LiveSite, until


def test_load_past_what_was_measured_adds_a_replica_and_its_end_takes_one_back(site: LiveSite) -> None:
    (first,) = site.wait_for(1)
    with site.requests(first, CAPACITY + 1):
        both = site.wait_for(2)
        assert first in both
        assert until(lambda: site.endpoints()["chat"] == set(both))
        assert ("add", "over_capacity") in {reason[:2] for reason in site.why("chat", 8)}
    (left,) = site.wait_for(1)
    assert left in both
    assert site.one("SELECT count(*) FROM capacity_action WHERE op = 'drain' AND replica_name IN (?, ?)", *both) == 1


def test_a_killed_engine_is_seen_and_replaced(site: LiveSite) -> None:
    (victim,) = site.wait_for(1)
    os.kill(site.engines()[victim], signal.SIGKILL)
    until(lambda: victim not in site.replicas() and site.counts("chat", 1), site.story)
    (follower,) = site.replicas()
    assert site.one("SELECT state FROM capacity_replica WHERE name = ?", victim) == "gone"
    assert until(lambda: site.endpoints()["chat"] == {follower})
