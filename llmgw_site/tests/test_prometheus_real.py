"""Loads through a real Prometheus server (Debian's package) that scrapes stand-ins of engines on loopback."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from capacity import fleet_scrape
from capacity.sources.store import LoadStore
from llmgw_site.tests.waiting import free_port, until

PROMETHEUS = shutil.which("prometheus") or ""
pytestmark = pytest.mark.skipif(not PROMETHEUS, reason="Prometheus is not installed")

TEXT = """\
vllm:num_requests_running{engine="0"} 61
vllm:num_requests_running{engine="1"} 17
vllm:num_requests_waiting{engine="0"} 2
vllm:num_requests_waiting{engine="1"} 0
vllm:generation_tokens_total{engine="0"} 100
vllm:e2e_request_latency_seconds_bucket{engine="0",le="1.0"} 3
vllm:e2e_request_latency_seconds_bucket{engine="0",le="+Inf"} 4
"""
# What the Python client makes of it for Prometheus 2, which asks for this form first
OPENMETRICS = TEXT.replace("vllm:", "vllm_") + "# EOF\n"
CONFIG = """\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: engines
    static_configs: [{{targets: [{targets}]}}]
"""


class Engine(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        modern = "openmetrics" in self.headers.get("Accept", "")
        body = (OPENMETRICS if modern else TEXT).encode()
        self.send_response(200)
        kind = "application/openmetrics-text; version=1.0.0; charset=utf-8" if modern else "text/plain; version=0.0.4"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def engines() -> Iterator[list[Engine]]:
    made = [Engine(), Engine()]
    yield made
    made[0].stop()


@pytest.fixture
def prometheus(tmp_path: Path, engines: list[Engine]) -> Iterator[str]:
    config, address = tmp_path / "prometheus.yml", f"127.0.0.1:{free_port()}"
    config.write_text(CONFIG.format(targets=", ".join(f"'{engine.name}'" for engine in engines)))
    command = [
        PROMETHEUS,
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    yield f"http://{address}"
    process.terminate()
    process.wait(timeout=30)


@pytest.fixture
def read(prometheus, engines, redis_client, settings, monkeypatch) -> Callable[[], LoadStore]:
    """One round of reading of the two engines and of one that the server does not know, and the store it was written to."""
    settings.PROMETHEUS_URL = prometheus
    monkeypatch.setattr(fleet_scrape, "redis_client", lambda: redis_client)
    urls = {"one": f"http://{engines[0].name}", "two": f"http://{engines[1].name}/v1", "stranger": "http://10.9.9.9:1"}
    endpoints = [("p", name, url) for name, url in urls.items()]
    shard = fleet_scrape.Shard(source="prometheus", number=0, endpoints=endpoints)

    def go() -> LoadStore:
        fleet_scrape.scrape_into_store(shard, datetime.now(UTC))
        return LoadStore(redis_client)

    return go


def test_engines_are_read_through_a_server_and_one_that_dies_is_no_lower_sum(read, engines):
    store = until(lambda: (found := read()) and len(found.loads("p")) == 2 and found)
    assert {name: (s.in_flight, s.output_tokens_total) for name, s in store.loads("p").items()} == {
        "one": (80, 100),
        "two": (80, 100),
    }
    assert store.latencies("p", ["one"])["one"].histograms["e2e"].count == 4
    assert "has no metrics of 10.9.9.9:1" in store.failures("p")["stranger"].reason
    engines[1].stop()
    last = until(lambda: (found := read()) and "two" in found.failures("p") and found.loads("p")["two"])
    assert "(up is 0)" in store.failures("p")["two"].reason
    assert last.in_flight == 80
    until(lambda: read().loads("p")["one"].sampled_at > last.sampled_at)
    assert store.loads("p")["two"] == last, "it ages, and whoever reads it judges its age"
