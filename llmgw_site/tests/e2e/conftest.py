"""One running site for all tests of real processes; each test begins with one ready replica and no load."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from llmgw_site.tests.test_chromium_journey import page as page

from . import rows
from .site import LiveSite, until

ALWAYS = ("redis", "web", "worker", "beat", "node")


@pytest.fixture(scope="package")  # its passes would take a processor from all other tests
def running_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSite]:
    site = LiveSite(tmp_path_factory.mktemp("site"))
    try:
        site.up()
        yield site
    finally:
        site.down()


@pytest.fixture
def site(running_site: LiveSite) -> LiveSite:
    """The running site, put back to what every test begins with."""
    running = running_site.running()
    for name in ("worker-2", "beat-2", "bench"):
        if name in running:
            running_site.kill(name)
    running_site.start(*(name for name in ALWAYS if name not in running))
    for name in rows.ASIDE:
        running_site.bounds(name, 0, 0)
        # what has no known load is never taken back by itself
        for pid in running_site.engines(name).values():
            os.kill(pid, signal.SIGKILL)
    running_site.bounds("chat", 1, 4)
    for name, count in (*((name, 0) for name in rows.ASIDE), ("chat", 1)):
        until(lambda name=name, count=count: running_site.counts(name, count), running_site.story)
    return running_site
