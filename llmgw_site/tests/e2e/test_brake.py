"""The brake on real processes: health pages that break all at once while the engines serve, and a brake that a person pulls."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from .site import LiveSite, until

ENGINES = 3
PATIENCE = ("start_timeout_seconds", "unready_grace_seconds")


@pytest.fixture
def impatient(site: LiveSite) -> Iterator[LiveSite]:
    """Three engines, and a pool that stops what is unready for a few seconds."""
    site.bounds("chat", ENGINES, ENGINES)
    site.wait_for(ENGINES)
    patience = site.ask(f"SELECT {', '.join(PATIENCE)} FROM capacity_poolsettings")[0]
    set_patience(site, 5, 2)
    try:
        yield site
    finally:
        set_patience(site, *patience)
        for pid in site.engines().values():
            os.kill(pid, signal.SIGUSR2)
        site.ask("DELETE FROM capacity_backoff")


def set_patience(site: LiveSite, start_timeout: int, grace: int) -> None:
    site.ask("UPDATE capacity_poolsettings SET start_timeout_seconds = ?, unready_grace_seconds = ?", start_timeout, grace)


def withheld(site: LiveSite) -> list[tuple[str, str]]:
    rows = json.loads(site.one("SELECT withheld FROM capacity_brake"))
    return sorted((row["replica"], row["rule"]) for row in rows)


def test_no_engine_ends_until_a_person_releases_them(impatient: LiveSite) -> None:
    site = impatient
    engines = site.engines()
    everyone = [(name, "unready_together") for name in sorted(engines)]
    for pid in engines.values():
        os.kill(pid, signal.SIGUSR1)
    until(lambda: withheld(site) == everyone, site.story)
    site.more_passes(5)
    assert site.engines() == engines
    assert set(site.replicas().values()) == {"unready"}

    for pid in engines.values():
        os.kill(pid, signal.SIGUSR2)
    site.wait_for(ENGINES)
    until(lambda: withheld(site) == [], site.story)
    assert site.engines() == engines

    for pid in engines.values():
        os.kill(pid, signal.SIGUSR1)
    until(lambda: withheld(site) == everyone, site.story)
    site.rows("release")
    until(lambda: not engines.items() & site.engines().items(), site.story)


def test_under_a_pulled_brake_load_starts_nothing_until_it_is_released(site: LiveSite) -> None:
    [first] = site.wait_for(1)
    site.rows("pull")
    try:
        with site.requests(first, 5):
            until(lambda: withheld(site) == [("", "manual")] * 2, site.story)
            site.more_passes(3)
            assert list(site.engines()) == [first]
            site.rows("release")
            site.wait_for(3)
    finally:
        site.ask("UPDATE capacity_brake SET is_on = 0")
