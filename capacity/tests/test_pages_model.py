"""One model's page: the first sentence, replicas with unknowns as unknown, profiles in their order, the range of the chart."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from capacity.models import BenchRun, LanguageModel, Rollup, Sample
from capacity.rollup import bucket_of, roll
from capacity.samples import pack
from capacity.tests.factories import make_measurement, make_model, make_profile
from capacity.tests.pages import make_decision, make_fleet, make_person, make_sample

pytestmark = pytest.mark.django_db


@pytest.fixture
def page_of(client):
    client.force_login(make_person("root", is_superuser=True, is_staff=True))
    return lambda model, **query: client.get(reverse("model", args=[model.name]), query)


def words(page):
    return " ".join(page.content.decode().replace("<b>", "").replace("</b>", "").split())


def test_the_first_sentence_says_how_it_is_and_what_comes_next(page_of):
    fleet = make_fleet()
    text = words(page_of(fleet.model))
    assert "10 requests in flight on 2 ready replicas that were measured to serve 20." in text
    assert "Adds above 20; takes one back below 7." in text
    assert page_of(fleet.model).context["health"].word == "Well"


def test_it_is_well_since_the_last_trouble_ended(page_of):
    fleet = make_fleet()
    ended = fleet.at - timedelta(minutes=30)
    make_decision(fleet.model, at=ended - timedelta(minutes=5), seen_until=ended, reason="no_room")
    assert page_of(fleet.model).context["health"].since == ended


@pytest.mark.parametrize(
    ("reason", "word"),
    [("no_room", "Short"), ("metrics_unknown", "Unknown"), ("paused", "Paused"), ("over_capacity", "Being changed")],
)
def test_trouble_is_the_first_word(page_of, reason, word):
    fleet = make_fleet()
    make_decision(fleet.model, at=fleet.at, seen_until=fleet.at, reason=reason)
    health = page_of(fleet.model).context["health"]
    assert (health.word, health.since) == (word, fleet.at)


def test_the_last_change_is_told_with_its_reason(page_of):
    fleet = make_fleet()
    then = fleet.at - timedelta(minutes=44)
    make_decision(
        fleet.model, at=then, seen_until=then, outcome="remove", count=1, reason="rest_under_threshold", why="86 was little."
    )
    assert "1 taken back. 86 was little." in words(page_of(fleet.model))


def test_advice_is_no_change(page_of):
    fleet = make_fleet()
    make_decision(fleet.model, at=fleet.at - timedelta(hours=1), outcome="add", count=1, is_advice=True, reason="over_capacity")
    assert page_of(fleet.model).context["last_change"] is None


def test_an_unknown_load_is_unknown_and_never_zero(page_of):
    fleet = make_fleet(loads=(6, None))
    known, unknown = page_of(fleet.model).context["replicas"]
    assert (known.in_flight, known.load_percent) == (6, 60.0)
    assert (unknown.in_flight, unknown.load_percent, unknown.load_word) == (None, None, "no reading")


def test_an_old_reading_is_not_shown_as_live(page_of):
    fleet = make_fleet()
    fleet.model.samples.update(at=timezone.now() - timedelta(minutes=3))
    page = page_of(fleet.model)
    assert [row.in_flight for row in page.context["replicas"]] == [None, None]
    assert "As of" in words(page)


def test_a_model_of_nothing_at_all_has_a_page(page_of):
    page = page_of(make_model())
    assert page.context["health"].word == "Not decided yet"
    text = words(page)
    assert "No pass has seen it yet." in text
    assert "No profile." in text


def test_profiles_stand_in_the_order_in_which_they_are_tried(page_of):
    model = make_model()
    for name, measured, fields in (
        ("retired", (50, 900), {"priority": 9, "state": "retire"}),
        ("unable", (0, 900), {"priority": 8}),
        ("unmeasured", None, {"priority": 5}),
        ("two-units", (50, 900), {"priority": 5, "units": 2}),
        ("one-unit", (40, 500), {"priority": 5}),
        ("first", (1, 1), {"priority": 7}),
    ):
        profile = make_profile(model, name, **fields)
        if measured:
            make_measurement(profile, max_concurrency=measured[0], tokens_per_second=measured[1])
    rows = page_of(model).context["profiles"]
    assert [row.profile.name for row in rows] == ["first", "one-unit", "two-units", "unmeasured", "unable", "retired"]
    assert rows[2].tokens_per_unit == 450.0


def test_the_newest_measurement_of_a_profile_is_in_use(page_of):
    fleet = make_fleet(capacity=10)
    make_measurement(fleet.profile, max_concurrency=99, measured_at=timezone.now() - timedelta(days=9))
    assert page_of(fleet.model).context["profiles"][0].measurement.max_concurrency == 10


def test_the_models_own_share_is_the_dashed_line(page_of):
    fleet = make_fleet()
    LanguageModel.objects.filter(pk=fleet.model.pk).update(scale_down_fraction="3/5")
    shapes = page_of(fleet.model).context["figure"]["layout"]["shapes"]
    assert sorted(shape["y0"] for shape in shapes) == [60, 100]


def test_changes_are_pills_that_link_to_their_decision(page_of):
    fleet = make_fleet()
    added = make_decision(fleet.model, at=fleet.at - timedelta(hours=2), outcome="add", count=2, reason="over_capacity")
    pills = next(trace for trace in page_of(fleet.model).context["figure"]["data"] if trace.get("meta") == "pills")
    assert ("+2", reverse("decision", args=[added.pk])) in list(zip(pills["text"], pills["customdata"], strict=True))
    assert "✎" in pills["text"]


@pytest.mark.parametrize("since", ["now-7x", "yesterday", "now-900d", "now-1s", "2026-13-01T00:00:00Z", "<b>", "9" * 300])
def test_a_range_that_cannot_be_read_is_one_sentence_and_the_default(client, page_of, since):
    fleet = make_fleet()
    page = page_of(fleet.model, **{"from": since, "to": "now"})
    assert page.status_code == 200
    assert "The usual range is shown instead." in page.context["range_fault"]
    assert "<b>”" not in page.content.decode()
    assert client.get(reverse("model_chart", args=[fleet.model.name]), {"from": since}).status_code == 400


def test_a_week_is_drawn_from_rollups(page_of):
    fleet = make_fleet()
    then = fleet.at - timedelta(days=3)
    sample = make_sample(fleet.model, then, [(fleet.replicas[0], 5)], 10)
    Rollup.objects.create(model=fleet.model, at=bucket_of(then), **roll([sample]))
    figure = page_of(fleet.model, **{"from": "now-7d", "to": "now"}).context["figure"]
    assert [trace["y"] for trace in figure["data"] if trace["name"] == fleet.replicas[0].name] == [[50.0]]


def test_an_exact_range_is_read_as_utc(page_of):
    fleet = make_fleet()
    span = page_of(fleet.model, **{"from": "2026-11-01T09:00:00Z", "to": "2026-11-01T10:00:00+00:00"}).context["span"]
    assert (span.end - span.start) == timedelta(hours=1)


def test_the_chart_has_a_sentence_and_a_table_beside_it(page_of):
    page = page_of(make_fleet(loads=(6, 4)).model)
    assert "60 % of its measured concurrency" in page.context["chart_sentence"]
    (row,) = page.context["chart_table"]
    assert (row.lowest, row.highest, row.rest, row.unread) == (40.0, 60.0, 100.0, False)


def test_a_replica_tells_its_state_and_that_no_log_is_at_hand(client, page_of):
    fleet = make_fleet()
    html = client.get(reverse("replica", args=[fleet.replicas[0].name])).content.decode() if page_of(fleet.model) else ""
    assert "No log is at hand" in html
    assert "ready</span>" in html


def test_a_replica_under_test_is_said_so_beside_the_five_numbers_with_a_way_to_its_sweep(client, page_of):
    fleet = make_fleet()
    tested, served = fleet.replicas
    Sample.objects.filter(model=fleet.model).update(
        ready=1, replicas=pack([(tested.pk, None, 10, None, "under_test"), (served.pk, 4, 10, None, "ready")])
    )
    run = BenchRun.objects.create(profile=fleet.profile, replica=tested, state="testing", heartbeat_at=timezone.now())
    page = page_of(fleet.model)
    text = page.content.decode()
    assert "1 ready · 0 unready · 0 starting · 0 draining · 2 wanted · 1 under test" in text
    assert f'under test</span> · <a href="{reverse("sweep", args=[run.pk])}">sweep →</a>' in text
    assert "under test" in [trace["name"] for trace in page.context["figure"]["data"]]
    assert "under test for" in page.context["chart_sentence"]
    assert page.context["chart_table"][0].tested
    rows = b"".join(page_of(fleet.model, format="csv").streaming_content).decode().splitlines()
    assert rows[0].endswith(",load_percent,note") and rows[1].endswith(f"{tested.name},,10.0,,under test")
    for name in ("now", "models"):
        assert "1 under test" in client.get(reverse(name)).content.decode()
    alone = client.get(reverse("replica", args=[tested.name])).content.decode()
    assert "under test</span>" in alone and "Its load is not known (under test)" in alone
