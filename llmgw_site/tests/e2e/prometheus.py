"""A real Prometheus with the shipped rules, their waits cut to seconds, that scrapes the running site as from elsewhere."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ..waiting import free_port
from .site import DEADLINE_SECONDS, ROOT, LiveSite, until

BINARY = shutil.which("prometheus")
RULES = ROOT / "docs" / "deploy" / "prometheus-rules.yml"
CONFIG = """
global: {{scrape_interval: 3s, scrape_timeout: 3s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: llmgw
    proxy_url: http://127.0.0.1:{proxy}
    authorization: {{credentials_file: {token}}}
    static_configs: [{{targets: ["127.0.0.1:{site}"]}}]
  - job_name: without-token
    proxy_url: http://127.0.0.1:{proxy}
    static_configs: [{{targets: ["127.0.0.1:{site}"]}}]
"""


class Prometheus:
    """`folder` holds its configuration and data; nothing of it outlives `running`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()

    @contextmanager
    def running(self, site: LiveSite) -> Iterator[Prometheus]:
        with proxy() as proxy_port:
            self._configure(site, proxy_port)
            command = [
                BINARY or "prometheus", f"--config.file={self.folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={self.folder / 'data'}", f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn",
            ]  # fmt: skip
            with (self.folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
                try:
                    until(self.answers, self.log)
                    yield self
                finally:
                    process.terminate()
                    process.wait(DEADLINE_SECONDS)

    def firing(self) -> set[str]:
        return {alert["labels"]["alertname"] for alert in self._get("alerts")["alerts"] if alert["state"] == "firing"}

    def values(self, query: str) -> list[float]:
        found = self._get("query", query=query)["result"]
        return [float(row["value"][1]) for row in found]

    def answers(self) -> bool:
        try:
            return bool(self._get("query", query="vector(1)"))
        except OSError:
            return False

    def log(self) -> str:
        return (self.folder / "log").read_text()[-2000:]

    def _configure(self, site: LiveSite, proxy_port: int) -> None:
        """One slow scrape on a busy machine is shorter than what is waited for."""
        rules, token = self.folder / "rules.yml", self.folder / "token"
        rules.write_text(re.sub(r"for: \d+[sm]", "for: 5s", RULES.read_text()))
        token.write_text(site.rows("operator"))
        text = CONFIG.format(rules=rules, token=token, site=site.port, proxy=proxy_port)
        (self.folder / "prometheus.yml").write_text(text)

    def _get(self, what: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{what}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]


@contextmanager
def proxy() -> Iterator[int]:
    """The port of a proxy as it may stand before the site: whoever comes through it needs a token."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Forward)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Forward(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        connection = http.client.HTTPConnection(url.netloc, timeout=10)
        headers = {key: value for key, value in self.headers.items() if key in {"Accept", "Authorization", "Host"}}
        try:
            connection.request("GET", url.path, headers={**headers, "X-Forwarded-For": "192.0.2.7"})
            answer = connection.getresponse()
            status, kind, body = answer.status, answer.headers.get("Content-Type", "text/plain"), answer.read()
        except OSError:
            status, kind, body = 502, "text/plain", b""
        finally:
            connection.close()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Quiet: a scrape a second."""
