"""A measurement's page, its acceptance, and several compared."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.urls import reverse

from capacity.models import BenchRun, Measurement
from capacity.services import measurement_store
from capacity.tests.factories import make_measurement, make_model, make_profile, make_scope
from capacity.tests.pages import HOSTILE, make_person
from capacity.tests.sweeps import SLO, judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(client: Any) -> Any:
    person = make_person("oscar", is_operator=True)
    client.force_login(person)
    return person


def stored(profile: Any = None, **setting: Any) -> Measurement:
    profile = profile or make_profile(engine_version="0.10")
    return measurement_store(profile, judged(**setting), slo=SLO, actor=None, reason="made")[0]


def page(client: Any, measurement: Measurement) -> str:
    return str(client.get(reverse("measurement", args=[measurement.pk])).content.decode())


def test_the_page_shows_numbers_stages_evidence_and_history(client: Any, operator: Any) -> None:
    text = page(client, stored(engine_version="0.10", hardware="a box"))
    for told in ("<b>2</b> requests in flight", "misses", "chosen", "engine version", "a box", "made"):
        assert told in text, told


def test_the_csv_has_a_line_a_stage(client: Any, operator: Any) -> None:
    answer = client.get(reverse("measurement", args=[stored().pk]), {"format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.getvalue().decode())))
    assert [(row["in_flight"], row["ttft_p95_ms"], row["meets_slo"]) for row in rows] == [
        ("0.98", "50.0", "meets"),
        ("1.98", "80.0", "meets"),
        ("3.98", "900.0", "fails"),
    ]


def test_a_typed_one_has_no_sweep_and_is_shown(client: Any, operator: Any) -> None:
    assert "Typed in." in page(client, make_measurement(evidence={"stages": "none"}))


def test_an_outdated_one_says_why_and_is_accepted_with_a_reason(client: Any, operator: Any) -> None:
    stale = stored(engine_version="0.9")
    assert "version 0.9, and the profile runs 0.10" in page(client, stale)
    url = reverse("measurement_accept", args=[stale.pk])
    assert client.post(url, {"reason": ""}).status_code == 400
    client.post(url, {"reason": "same speed"})
    stale.refresh_from_db()
    assert (stale.status, stale.history.first().history_user) == ("current", operator)


def test_a_viewer_sees_it_and_may_not_accept_it_and_others_find_nothing(client: Any) -> None:
    scope = make_scope("team")
    stale = stored(make_profile(make_model(scope=scope), engine_version="0.10"), engine_version="0.9")
    for person, sees, accepts in ((make_person("vera", scope), 200, 403), (make_person("otto", make_scope("else")), 404, 404)):
        client.force_login(person)
        assert client.get(reverse("measurement", args=[stale.pk])).status_code == sees
        assert client.post(reverse("measurement_accept", args=[stale.pk]), {"reason": "x"}).status_code == accepts
        compared = client.get(reverse("measurements_compare"), {"id": [stale.pk, stale.pk + 1]}).context["found"]
        assert len(compared) == (1 if sees == 200 else 0)


def test_two_to_five_are_compared(client: Any, operator: Any) -> None:
    rows = [stored() for _ in range(6)]
    url = reverse("measurements_compare")
    told = client.get(url, {"id": [row.pk for row in rows[:3]]})
    assert len([trace for trace in told.context["figure"]["data"] if trace["showlegend"]]) == 3
    assert client.get(url, {"id": [row.pk for row in rows]}).context["too_many"]
    assert client.get(url, {"id": ["x", "9" * 30, rows[0].pk]}).context["too_few"]


def test_names_and_hints_are_never_markup(client: Any, operator: Any) -> None:
    text = page(client, stored(make_profile(make_model("m"), HOSTILE), hardware=HOSTILE, dataset=HOSTILE))
    assert "<img src=x" not in text
    figure = json.loads(text.split('id="figure" type="application/json">')[1].split("</script>")[0])
    assert "<img" not in json.dumps(figure)


def test_the_page_asks_as_many_queries_for_many_measurements_as_for_few(
    client: Any, operator: Any, django_assert_num_queries: Any
) -> None:
    profile = make_profile(engine_version="0.10")
    first = stored(profile)
    page(client, first)
    with django_assert_num_queries(10):
        page(client, first)
    Measurement.objects.bulk_create(
        [Measurement(profile=profile, max_concurrency=1, tokens_per_second=1, status="stale") for _ in range(60)]
    )
    with django_assert_num_queries(10):
        page(client, first)


def test_a_sweep_that_is_over_shows_the_chart_of_what_it_gave(client: Any, operator: Any) -> None:
    measurement = stored(make_profile())
    run = BenchRun.objects.create(profile=measurement.profile, state="done", measurement=measurement)
    assert 'id="sweep-chart"' in client.get(reverse("sweep", args=[run.pk])).content.decode()
    part = client.get(reverse("sweep", args=[run.pk]), {"part": ""}).content.decode()
    assert 'id="sweep-chart"' not in part, "a part that is swapped in brings no scripts"
