"""The shipped alerts in a real Prometheus: a beat that stops is late, a web process that stops is absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import prometheus
from .prometheus import Prometheus
from .site import LiveSite, until

DESIRED = 'llmgw_desired_replicas{pool="e2e", model="chat"}'
DEAD = {"LlmgwAbsent", "LlmgwNoPass", "LlmgwLatePass"}


@pytest.mark.skipif(prometheus.BINARY is None, reason="Debian's package prometheus is not installed")
def test_what_is_late_and_what_is_dead_is_alerted_and_other_scalers_are_never_told_0(site: LiveSite, tmp_path: Path) -> None:
    with Prometheus(tmp_path).running(site) as server:
        until(lambda: server.values('up{job="llmgw"}') == [1] and server.values(DESIRED) == [1], server.log)
        # a scrape from elsewhere needs its token
        assert until(lambda: server.values('up{job="without-token"}') == [0], server.log)
        until(lambda: not server.firing() & DEAD, lambda: str(server.firing()))

        site.kill("beat")
        until(lambda: "LlmgwLatePass" in server.firing(), lambda: str(server.firing()))
        until(lambda: server.values(DESIRED) == [], lambda: str(server.values(DESIRED)))
        assert "LlmgwAbsent" not in server.firing()

        site.start("beat")
        until(lambda: not server.firing() & DEAD and server.values(DESIRED) == [1], lambda: str(server.firing()))

        site.kill("web")
        until(lambda: "LlmgwAbsent" in server.firing(), lambda: str(server.firing()))
        assert "LlmgwLatePass" not in server.firing(), "what is dead says nothing of passes"

        site.start("web")
        until(lambda: not server.firing() & DEAD, lambda: str(server.firing()))
        assert min(server.values(f"min_over_time({DESIRED}[1h])")) == 1, "it was absent, and never 0"
