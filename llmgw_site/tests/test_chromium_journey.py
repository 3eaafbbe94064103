"""What an operator does first, in a real browser: sign in, open a model, read its chart and why it was scaled."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from capacity.models import Measurement, Sample
from capacity.tests.factories import make_model, make_profile
from capacity.tests.pages import make_decision, make_fleet, make_person, make_sample
from capacity.tests.result_files import LEVELS, vllm_lines

CHROMIUM = shutil.which("chromium") or ""
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking",
    "--disable-component-update --disable-sync",
)
HOSTILE = '"><img src=x onerror=alert(1)>'

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(live_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A signed-out page of a fresh browser; whatever the console or a dialog says fails the test."""
    if not CHROMIUM:
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    # Playwright's synchronous interface runs a loop in this thread, which Django takes for asynchronous code
    monkeypatch.setitem(os.environ, "DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    said: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=" ".join(FLAGS).split())
        page = browser.new_page(base_url=live_server.url, viewport={"width": 1280, "height": 1000})
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        yield page
        browser.close()
    assert said == []


def test_an_operator_signs_in_changes_his_password_and_reads_why_a_model_was_scaled(page: Any) -> None:
    fleet = make_fleet(HOSTILE)
    for minutes in range(1, 10):
        at = fleet.at - timedelta(minutes=minutes)
        make_sample(fleet.model, at, [(replica, 5) for replica in fleet.replicas], 10)
    assert Sample.objects.count() == 10
    why = "21 requests in flight are more than the 20 that 2 ready replicas were measured to serve."
    make_decision(fleet.model, at=fleet.at - timedelta(minutes=3), outcome="add", count=1, reason="over_capacity", why=why)
    make_person("amira", is_operator=True, must_change_password=True)
    page.goto("/")
    page.fill("input[name=username]", "amira")
    page.fill("input[name=password]", "a-long-password")
    page.press("input[name=password]", "Enter")
    page.fill("input[name=old_password]", "a-long-password")
    for field in ("new_password1", "new_password2"):
        page.fill(f"input[name={field}]", "entirely-other-words-7")
    page.press("input[name=new_password2]", "Enter")
    page.wait_for_url("**/password/done/")
    page.goto("/models/")
    page.get_by_role("link", name=HOSTILE).first.click()
    page.wait_for_selector(".js-plotly-plot .shapelayer path", state="attached")
    plot = page.locator(".js-plotly-plot")
    shapes = plot.evaluate("plot => plot._fullLayout.shapes.map(shape => [shape.y0, shape.y1, shape.line.dash])")
    assert [100, 100, "solid"] in shapes
    assert [70, 70, "dash"] in shapes
    heights = plot.evaluate("plot => [0, 70, 100].map(y => plot._fullLayout.yaxis.l2p(y))")
    drawn = plot.evaluate("plot => plot._fullLayout.yaxis.range")
    assert drawn[0] == 0
    assert drawn[1] >= 120
    assert heights[0] > heights[1] > heights[2] > 0
    dashes = plot.evaluate("plot => plot._fullData.map(trace => trace.line && trace.line.dash)")
    assert "dot" in dashes, "the load of the rest, if one were taken back"
    assert why in page.locator("main").inner_text()


def test_a_model_page_fits_a_phone(page: Any) -> None:
    fleet = make_fleet()
    make_person("amira", is_operator=True)
    page.set_viewport_size({"width": 360, "height": 700})
    page.goto(f"/models/{fleet.model.name}/")
    page.fill("input[name=username]", "amira")
    page.fill("input[name=password]", "a-long-password")
    page.press("input[name=password]", "Enter")
    page.wait_for_selector(".js-plotly-plot .shapelayer path", state="attached")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_result_files_are_dropped_looked_at_stored_and_drawn(page: Any, tmp_path: Path) -> None:
    make_profile(make_model("llama-8b"), HOSTILE)
    make_person("amira", is_operator=True)
    (tmp_path / "low.json").write_bytes(vllm_lines(*LEVELS[:2]))
    (tmp_path / "high.json").write_bytes(vllm_lines(LEVELS[2]))
    page.goto("/measurements/import/")
    page.fill("input[name=username]", "amira")
    page.fill("input[name=password]", "a-long-password")
    page.press("input[name=password]", "Enter")
    page.set_input_files("input[name=file]", [tmp_path / "low.json", tmp_path / "high.json"])
    page.select_option("select[name=profile]", label=f"llama-8b · {HOSTILE}")
    page.fill("input[name=slo]", "ttft p95 500")
    page.get_by_role("button", name="Look at it").click()
    page.wait_for_selector("#preview .js-plotly-plot .scatterlayer .trace")
    assert "2 requests in flight at 190 tokens/s" in page.locator("#preview").inner_text()
    assert not Measurement.objects.exists()
    page.fill("input[name=reason]", "measured at night")
    page.get_by_role("button", name="Store it").click()
    page.wait_for_selector(".js-plotly-plot .shapelayer path", state="attached")
    stored = Measurement.objects.get()
    assert page.url.endswith(f"/measurements/{stored.pk}/")
    assert (stored.max_concurrency, stored.kind, len(stored.evidence["files"])) == (2, "located", 2)
    levels = page.locator(".js-plotly-plot").evaluate(
        "plot => plot._fullLayout.shapes.map(shape => [shape.yref, Math.round(shape.x0), shape.y0])"
    )
    assert levels == [["paper", 2, 0], ["y2", 0, 500]]
    page.set_viewport_size({"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
