"""A simulator measured through the page: left alone by the passes meanwhile, and given back however its sweep ends."""

from __future__ import annotations

import re
import signal
import urllib.parse
import urllib.request
from datetime import UTC, datetime, timedelta
from http.cookiejar import CookieJar

from .rows import PASSWORD
from .site import LiveSite, until


class Browser:
    """Somebody who is signed in and sends forms."""

    def __init__(self, site: LiveSite, name: str) -> None:
        self.base = f"http://{site.address}:{site.port}"
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        self.send("/login/", username=name, password=PASSWORD)

    def send(self, path: str, **fields: str) -> str:
        """The page where the form led to."""
        with self.opener.open(self.base + path, timeout=30) as page:
            token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.read().decode())
        assert token is not None
        body = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": token[1]}).encode()
        with self.opener.open(self.base + path, body, timeout=30) as answer:
            return str(answer.url)


def measure(site: LiveSite, browser: Browser, seconds: int) -> int:
    """The run that the page's form starts: one that serves is taken."""
    profile = site.one(
        "SELECT p.id FROM capacity_profile p JOIN capacity_languagemodel m ON m.id = p.model_id WHERE m.name = 'chat'"
    )
    asked = {"slo": "ttft p95 60000", "levels": "2", "seconds": str(seconds), "input_tokens": "16", "output_tokens": "4"}
    url = browser.send(
        f"/profiles/{profile}/measure/", where="take", take_last="on", api="chat", reason="new engine", act="start", **asked
    )
    return int(url.rstrip("/").rpartition("/")[2])


def state(site: LiveSite, run: int) -> str:
    return str(site.one("SELECT state FROM capacity_benchrun WHERE id = ?", run))


def reaches(site: LiveSite, run: int, wanted: str) -> None:
    said = "SELECT state, message FROM capacity_benchrun WHERE id = ?"
    until(lambda: state(site, run) == wanted, lambda: f"{site.ask(said, run)} {site.log('bench')[-2000:]}")


def of_run(site: LiveSite, run: int) -> str:
    return str(
        site.one("SELECT r.name FROM capacity_benchrun b JOIN capacity_replica r ON r.id = b.replica_id WHERE b.id = ?", run)
    )


def test_a_replica_is_measured_by_the_page_and_given_back_by_a_worker_that_is_killed_or_ended(site: LiveSite) -> None:
    site.wait_for(1)
    browser = Browser(site, site.rows("measurer"))
    site.start("bench")
    run = measure(site, browser, 1)
    reaches(site, run, "done")
    number = (
        "SELECT m.max_concurrency FROM capacity_benchrun b JOIN capacity_measurement m ON m.id = b.measurement_id WHERE b.id = ?"
    )
    assert site.one(number, run) == 2

    run = measure(site, browser, 600)
    reaches(site, run, "testing")
    tested = of_run(site, run)
    # the passes leave it alone, and start another for those who ask
    until(lambda: len(site.replicas()) == 2, site.story)
    site.more_passes(3)
    assert site.replicas()[tested] == "ready"
    assert tested not in site.endpoints()["chat"]
    site.kill("bench")
    long_ago = datetime.now(UTC) - timedelta(minutes=2)
    site.ask("UPDATE capacity_benchrun SET heartbeat_at = ? WHERE id = ?", long_ago.strftime("%Y-%m-%d %H:%M:%S.%f"), run)
    reaches(site, run, "failed")
    until(lambda: len(site.replicas()) == 1 or tested in site.endpoints()["chat"], site.story)

    site.start("bench")
    run = measure(site, browser, 600)
    reaches(site, run, "testing")
    site.kill("bench", signal.SIGTERM)
    assert state(site, run) == "stopped"
    site.wait_for(1)
