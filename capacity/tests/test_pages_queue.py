"""What to measure next, and the list of what is in use: the order, what is left out, and who sees it."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from capacity.models import BenchRun, LanguageModel, Measurement, Pass, Replica, Slo
from capacity.tests.factories import make_measurement, make_model, make_pool, make_profile, make_scope
from capacity.tests.pages import HOSTILE, make_person
from capacity.views.measurement_queue import why_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(client: Any) -> Any:
    person = make_person("oscar", is_operator=True)
    client.force_login(person)
    return person


def profile(name: str, *, running: int = 0, scope: Any = None, **measured: Any) -> Any:
    made = make_profile(make_model(name, scope=scope), "one")
    if measured:
        make_measurement(made, **{"kind": "located", **measured})
    for number in range(running):
        pool = made.model.pool
        Replica.objects.create(name=f"{name}-{number}", pool=pool, model=made.model, profile=made, state="ready")
    return made


def queued(client: Any) -> list[str]:
    return [row.profile.model.name for row in client.get(reverse("measurements_queue")).context["rows"]]


def test_outdated_ones_in_use_come_first_by_how_many_replicas_rest_on_them(client: Any, operator: Any) -> None:
    profile("good", status="current", running=5)
    profile("never", status="current", max_concurrency=0, kind="never_met")
    profile("more", status="current", kind="at_least")
    profile("typed", status="assumed")
    profile("told", status="current", kind="")
    profile("unbound", status="current", kind="not_binding")
    profile("idle", status="stale")
    profile("new")
    profile("one", status="stale", running=1)
    profile("three", status="stale", running=3)
    retired = profile("retired")
    retired.state = "retire"
    retired.save()
    assert queued(client) == ["three", "one", "new", "idle", "typed", "more", "told", "unbound", "never"]


def test_a_button_starts_the_usual_sweep(client: Any, operator: Any) -> None:
    made = profile("new", running=2)
    row = client.get(reverse("measurements_queue")).context["rows"][0]
    assert row.fields["reason"] == "unmeasured; 2 replicas rest on it"
    assert row.duration.endswith(" min")
    answer = client.post(reverse("measure", args=[made.pk]), {**row.fields, "slo": "ttft p95 500"})
    run = BenchRun.objects.get()
    assert (answer.status_code, run.profile, run.own_replica, run.reason) == (302, made, True, row.fields["reason"])
    assert client.get(reverse("measurements_queue")).context["rows"][0].open_run == run.pk


@pytest.mark.parametrize(
    ("slo", "leads_to"),
    [(None, "languagemodel/"), ({}, "slo/"), ({"ttft_percentile": 95, "ttft_ms": 500}, "")],
)
def test_where_there_is_no_slo_to_judge_by_queue_and_page_lead_to_setting_one(
    client: Any, operator: Any, slo: Any, leads_to: str
) -> None:
    made = profile("new")
    if slo is not None:
        LanguageModel.objects.update(slo=Slo.objects.create(name="quick", **slo))
    queue = client.get(reverse("measurements_queue")).content.decode()
    page = client.get(reverse("measure", args=[made.pk]) + "?where=own").content.decode()
    for text in (queue, page):
        assert ("set an SLO first →" in text) == bool(leads_to)
        assert f"capacity/{leads_to}" in text or not leads_to
    assert ("measure (" in queue) == (not leads_to)


def test_viewers_see_their_own_without_a_button(client: Any) -> None:
    scope = make_scope("team")
    profile("theirs", scope=scope)
    profile("foreign")
    client.force_login(make_person("vera", scope))
    assert queued(client) == ["theirs"]
    assert "measure/" not in client.get(reverse("measurements_queue")).content.decode()


def test_names_are_never_markup(client: Any, operator: Any) -> None:
    profile(HOSTILE, status="stale", running=1)
    assert "<img src=x" not in client.get(reverse("measurements_queue")).content.decode()


@pytest.mark.parametrize(("page", "queries"), [("measurements_queue", 9), ("measurements", 9)])
def test_as_many_queries_for_many_measurements_as_for_few(
    client: Any, operator: Any, page: str, queries: int, django_assert_num_queries: Any
) -> None:
    made = profile("first", status="stale", running=1)
    client.get(reverse(page))
    with django_assert_num_queries(queries):
        client.get(reverse(page))
    rows = [Measurement(profile=made, max_concurrency=1, tokens_per_second=1, status="stale") for _ in range(1000)]
    Measurement.objects.bulk_create(rows)
    for number in range(5):
        profile(f"more-{number}", status="stale", running=1)
    with django_assert_num_queries(queries):
        client.get(reverse(page))


def test_the_list_names_rows_that_the_last_pass_left_out_to_those_who_see_everything(client: Any, operator: Any) -> None:
    pool = make_pool()
    problem = {"code": "invalid_row", "subject": "measurement:llama · one", "detail": "status 'x' is none of them"}
    Pass.objects.create(pool=pool, at=timezone.now(), seconds=0.1, generation=1, problems=[problem, "x"])
    assert client.get(reverse("measurements")).context["skipped"] == [("llama · one", "status 'x' is none of them")]
    client.force_login(make_person("vera", make_scope("team")))
    assert client.get(reverse("measurements")).context["skipped"] == []


def test_why_names_what_is_poor_about_it() -> None:
    made = {"max_concurrency": 8, "tokens_per_second": 1}
    assert why_of(None, 0) == "unmeasured; nothing runs on it"
    assert why_of(Measurement(status="stale", **made), 1) == "outdated; 1 replica rests on it"
    current = Measurement(status="current", kind="at_least", **made)
    assert why_of(current, 2) == "nothing above 8 in flight was judged; 2 replicas rest on it"
    unkind = Measurement(status="current", **made)
    assert why_of(unkind, 0) == "nobody knows whether 8 in flight is its limit; nothing runs on it"
