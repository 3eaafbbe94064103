"""What a person sees of the figure and of an edit, in real Chromium: measured on the screen, not asked of the chart's library.

Pictures of each step lie in the test's own temporary folder, whose path is said with `-rP`.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from capacity.tests.pages import HOSTILE, Fleet, make_decision, make_fleet, make_person, make_sample

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PASSES = timedelta(seconds=15)
WHY = "21 requests in flight are more than the 20 that 2 ready replicas were measured to serve."
# the middles of the tick labels of the y axis, and of each line of the figure: [[text, y], …], [[dashes, y, width], …]
TICKS = """plot => [...plot.querySelectorAll('.ytick text')].map(tick => {
  const box = tick.getBoundingClientRect(); return [tick.textContent, box.top + box.height / 2]; })"""
LINES = """plot => [...plot.querySelectorAll('.shapelayer path')].map(line => {
  const box = line.getBoundingClientRect();
  return [getComputedStyle(line).strokeDasharray, box.top + box.height / 2, box.width]; })"""
DOTTED = """plot => [...plot.querySelectorAll('.scatterlayer path.js-line')].map(line => {
  const box = line.getBoundingClientRect(); return [getComputedStyle(line).strokeDasharray, box.top, box.bottom, box.width]; })"""
COLOUR = "element => getComputedStyle(element).backgroundColor"


@pytest.fixture
def hours(page: Any) -> Fleet:
    """A signed-in operator, and a model of a hostile name with an hour of passes: two replicas at 3 of 10, at last at 6 and 4."""
    fleet = make_fleet(HOSTILE)
    for number in range(1, 240):
        make_sample(fleet.model, fleet.at - number * PASSES, [(replica, 3) for replica in fleet.replicas], 10)
    make_decision(fleet.model, at=fleet.at - timedelta(minutes=40), outcome="add", count=1, reason="over_capacity", why=WHY)
    make_person("amira", is_operator=True, is_staff=True, is_superuser=True)
    page.goto("/login/")
    page.fill("input[name=username]", "amira")
    page.fill("input[name=password]", "a-long-password")
    page.press("input[name=password]", "Enter")
    page.wait_for_url("**/")
    return fleet


@pytest.fixture
def picture(page: Any, tmp_path: Path) -> Any:
    def take(name: str) -> None:
        print("picture:", page.screenshot(path=tmp_path / f"{name}.png", full_page=True) and tmp_path / f"{name}.png")

    return take


def open_model(page: Any, query: str = "?from=now-1h&to=now") -> Any:
    """The drawn figure of the one model, come to by its link in the list."""
    page.goto("/models/")
    page.get_by_role("link", name=HOSTILE).first.click()
    page.wait_for_url(re.compile(r"/models/.+"))
    page.goto(page.url.split("?")[0] + query)
    page.wait_for_selector(".js-plotly-plot .shapelayer path", state="attached")
    return page.locator(".js-plotly-plot")


def heights(plot: Any) -> Any:
    """Percent → y on the screen, by the labels of the axis."""
    labels = {float(re.sub("[^0-9.]", "", text)): y for text, y in plot.evaluate(TICKS)}
    zero, (percent, there) = labels[0.0], max(labels.items())
    return lambda share: zero + (there - zero) * share / percent


def test_both_lines_and_the_rest_lie_where_the_axis_says(page: Any, hours: Fleet, picture: Any) -> None:
    plot = open_model(page)
    picture("model")
    at = heights(plot)
    lines = plot.evaluate(LINES)
    solid = [y for dashes, y, _ in lines if dashes == "none"]
    dashed = [y for dashes, y, _ in lines if dashes != "none"]
    assert solid == [pytest.approx(at(100), abs=2)]
    assert dashed == [pytest.approx(at(70), abs=2)]
    assert {width > 400 for _, _, width in lines} == {True}
    # two replicas at 30 % of their own: one alone would be at 60 %, and at the newest pass (6 and 4) at 100 %
    drawn = plot.evaluate(DOTTED)
    dotted = [line for line in drawn if line[0] != "none" and line[3] > 100]
    assert [(top, bottom) for _, top, bottom, _ in dotted] == [(pytest.approx(at(100), abs=3), pytest.approx(at(60), abs=3))]


def test_a_marker_opens_its_decision_and_says_why(page: Any, hours: Fleet, picture: Any) -> None:
    plot = open_model(page)
    assert WHY in page.locator("main").inner_text()
    face = plot.locator(".textpoint text").get_by_text("+1", exact=True).bounding_box()
    page.mouse.move(face["x"] + face["width"] / 2, face["y"] + face["height"] / 2, steps=5)
    plot.locator(".hoverlayer .hovertext").wait_for()
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url(re.compile(r"/decisions/\d+/"))
    picture("decision")
    assert WHY in page.locator("main").inner_text()


def test_the_replicas_are_a_table_and_a_hostile_name_is_only_a_name(page: Any, hours: Fleet) -> None:
    open_model(page)
    table = page.locator("main").inner_text()
    assert all(replica.name in table for replica in hours.replicas)
    assert page.locator("img[src='x']").count() == 0
    for path in ("/", "/models/", "/decisions/", "/nodes/", "/admin/capacity/languagemodel/"):
        page.goto(path)
        assert page.locator("img[src='x']").count() == 0, path


def test_light_and_dark_and_a_phone_without_sideways_scrolling(page: Any, hours: Fleet, picture: Any) -> None:
    page.emulate_media(color_scheme="light")
    plot = open_model(page)
    body = page.locator("body")
    light = body.evaluate(COLOUR)
    page.emulate_media(color_scheme="dark")
    assert body.evaluate(COLOUR) != light
    picture("dark")
    page.locator("[data-theme-toggle]").click()
    assert body.evaluate(COLOUR) == light
    page.set_viewport_size({"width": 360, "height": 740})
    plot.locator(".shapelayer path").first.wait_for(state="attached")
    for path in (page.url, "/", "/models/", "/decisions/", "/nodes/"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
    picture("phone")


def test_an_edit_in_the_admin_is_on_the_models_page(page: Any, hours: Fleet, picture: Any) -> None:
    open_model(page)
    assert "max open" in page.locator("main .head").first.inner_text()
    page.get_by_role("link", name="edit", exact=True).click()
    page.fill("input[name=max_replicas]", "7")
    page.fill("[name=reason]", "a test of the edit")
    picture("admin")
    page.click("input[name=_save]")
    page.wait_for_url("**/admin/capacity/languagemodel/")
    open_model(page)
    assert "max 7" in page.locator("main .head").first.inner_text()
    hours.model.refresh_from_db()
    assert hours.model.max_replicas == 7
