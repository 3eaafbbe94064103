"""A sweep asked for by page, API and command: the same facts, the same refusals, the same people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError
from django.urls import reverse

from capacity import exporter
from capacity.briefings import sweep_facts
from capacity.models import BenchRun, LanguageModel, Replica, Slo
from capacity.tests.api_people import member, person
from capacity.tests.factories import make_scope
from capacity.tests.fleet import Fleet
from capacity.tests.measuring import STAGES
from capacity.tests.measuring_faces import SLO, as_operator, bench, body, form, live_fleet, page_of
from capacity.tests.pages import HOSTILE

pytestmark = pytest.mark.django_db


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    return live_fleet(monkeypatch)


@pytest.fixture
def operator(client: Any) -> Any:
    return as_operator(client)


def test_the_page_says_what_it_takes_before_anything_is_done(live: Fleet, operator: Any) -> None:
    text = operator.post(page_of(live), form(act="look")).content.decode()
    assert "about 2 min" in text
    assert "A replica of its own is started on n1; after the sweep it is one of the model" in text
    assert "1 of 2 ready replicas stay, 20 → 10 requests in flight within the SLO; now 8." in text
    assert "The next pass would start 1 replica in its place." in text
    assert not BenchRun.objects.exists()


def test_it_is_started_by_the_page_and_stopped_there(live: Fleet, operator: Any) -> None:
    text = operator.post(page_of(live), form(act="start"), follow=True).content.decode()
    run = BenchRun.objects.get()
    assert (run.state, run.actor, run.levels, run.own_replica) == ("queued", "olga", "1,2,4", True)
    assert "Stop it" in text
    assert 'hx-trigger="every 2s"' in text
    assert operator.post(page_of(live), form(act="start")).status_code == 400
    operator.post(reverse("sweep_stop", args=[run.pk]))
    run.refresh_from_db()
    assert run.state == "stopped"
    assert "hx-trigger" not in operator.get(reverse("sweep", args=[run.pk]) + "?part").content.decode()


@pytest.mark.parametrize("wrong", [{"reason": ""}, {"levels": "0"}, {"slo": "quick"}, {"seconds": ""}, {"where": "there"}])
def test_what_is_refused_is_kept_at_its_field_and_changes_nothing(live: Fleet, operator: Any, wrong: dict[str, Any]) -> None:
    answer = operator.post(page_of(live), form(act="start", **wrong))
    assert answer.status_code == 400
    assert "errorlist" in answer.content.decode()
    assert not BenchRun.objects.exists()


def test_a_run_under_way_shows_its_levels_and_no_markup_of_others(live: Fleet, operator: Any) -> None:
    from capacity.measuring.document import stage_rows

    run = BenchRun.objects.create(
        profile=live.profile,
        state="testing",
        heartbeat_at=datetime.now(UTC),
        actor=HOSTILE,
        reason=HOSTILE,
        slo_text=SLO,
        progress={"doing": "measuring", "level": 8, "levels_done": 3, "levels_left": 2, "seconds_left": 130, "finished": 12},
        stages=stage_rows(STAGES),
        message=HOSTILE,
    )
    text = operator.get(reverse("sweep", args=[run.pk])).content.decode()
    assert HOSTILE not in text
    assert "<b>3</b> levels done, about <b>2</b> to do, 2 min left; now at <b>8</b> in flight" in text
    assert reverse("sweep", args=[run.pk]) in operator.get("/measurements/").content.decode()


def test_levels_stand_as_they_come_and_rise_when_it_is_over(live: Fleet, operator: Any) -> None:
    from capacity.measuring.document import stage_rows

    came = [STAGES[2], STAGES[0], STAGES[1]]
    run = BenchRun.objects.create(
        profile=live.profile, state="testing", heartbeat_at=datetime.now(UTC), slo_text=SLO, stages=stage_rows(came)
    )

    def levels() -> list[Any]:
        return [row["level"] for row in operator.get(reverse("sweep", args=[run.pk])).context["stages"]]

    assert levels() == [4, 1, 2]
    BenchRun.objects.update(state="done")
    assert levels() == [1, 2, 4]


def test_viewers_see_runs_of_theirs_and_start_and_stop_none(live: Fleet, client: Any) -> None:
    scope = make_scope("acme")
    LanguageModel.objects.update(scope=scope)
    run = BenchRun.objects.create(profile=live.profile, slo_text=SLO)
    viewer, stranger = member("vera", scope), member("sam", make_scope("other"))
    assert [row["id"] for row in viewer.get("/api/v1/bench_runs").json()["results"]] == [run.pk]
    assert stranger.get("/api/v1/bench_runs").json()["results"] == []
    for caller, status in ((viewer, 403), (stranger, 404)):
        assert caller.post("/api/v1/bench_runs", body(), format="json").status_code == status
        assert caller.post(f"/api/v1/bench_runs/{run.pk}/stop").status_code == status
        client.force_login(caller.user)
        assert client.get(page_of(live)).status_code == status
        assert client.post(reverse("sweep_stop", args=[run.pk])).status_code == status
        assert client.get(reverse("sweep", args=[run.pk])).status_code == (200 if status == 403 else 404)
    assert BenchRun.objects.get().state == "queued"


def test_the_api_previews_starts_shows_and_stops(live: Fleet) -> None:
    operator = person("otto", is_operator=True)
    look = operator.post("/api/v1/bench_runs", body(preview=True), format="json").json()
    assert look["own"] == {"possible": True, "nodes": ["n1"], "why": ""}
    assert (look["take"]["capacity_before"], look["take"]["capacity_after"]) == (20, 10)
    assert not BenchRun.objects.exists()
    made = operator.post("/api/v1/bench_runs", body(), format="json")
    assert made.status_code == 201
    again = operator.post("/api/v1/bench_runs", body(), format="json")
    assert again.status_code == 400
    run = made.json()["id"]
    assert operator.get(f"/api/v1/bench_runs/{run}").json()["state"] == "queued"
    assert operator.post(f"/api/v1/bench_runs/{run}/stop").json()["state"] == "stopped"
    assert operator.post(f"/api/v1/bench_runs/{run}/stop").status_code == 400


@pytest.mark.parametrize(
    "wrong", [{"levels": "x"}, {"model": "none"}, {"endpoint": "http://169.254.169.254/"}, {"colour": "red"}]
)
def test_the_api_refuses_what_cannot_be(live: Fleet, wrong: dict[str, Any]) -> None:
    answer = person("otto", is_operator=True).post("/api/v1/bench_runs", body(**wrong), format="json")
    assert answer.status_code in {400, 404}
    assert not BenchRun.objects.exists()


def test_the_runs_page_says_doubts_in_words_and_when_its_worker_was_last_heard(live: Fleet, operator: Any) -> None:
    operator.post(page_of(live), form(act="start"))
    run = BenchRun.objects.get()
    row = {"level": 1, "requests": 1, "seconds": 30, "flags": ["simulated", "nonsense"]}
    heard = datetime.now(UTC) - timedelta(seconds=40)
    BenchRun.objects.update(state="testing", stages=[row, {**row, "level": 2, "requests": 6}], heartbeat_at=heard)
    url = reverse("sweep", args=[run.pk])
    text = operator.get(url).content.decode()
    assert "Level 1: weak: 1 finished, under 3 × 1" in text and "Levels 1, 2: simulated: no engine was measured" in text
    assert "nonsense" not in text
    assert "Its worker was last heard" in text and "when it stays silent" in text
    answer = operator.get(url, headers={"HX-Request": "true"})
    assert 'id="topbar"' in answer.content.decode(), "the header is kept fresh by the page's own poll"


def test_a_form_with_an_error_still_says_what_the_usual_sweep_takes(live: Fleet, operator: Any) -> None:
    live.model.slo = Slo.objects.create(name="s", ttft_percentile=95, ttft_ms=500)
    live.model.save()
    answer = operator.post(page_of(live), form(act="look", levels="banana"))
    assert (answer.status_code, answer.context["is_usual"]) == (400, True)
    assert "What the usual sweep takes: about" in answer.content.decode()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setattr("capacity.tests.fleet.START", datetime.now(UTC))
    fleet = Fleet(min_replicas=1, max_replicas=1)
    fleet.passes(2)
    fleet.share(4)
    monkeypatch.setattr(sweep_facts, "deps", lambda: fleet.deps)
    return fleet


def test_taking_the_only_ready_replica_is_said_first_and_needs_a_second_word(alone: Fleet, operator: Any) -> None:
    said = "No replica stays: what comes (4 requests in flight now) is held until the sweep is over, about 2 min."
    text = operator.post(page_of(alone), form(act="look", where="take")).content.decode()
    assert text.index(said) < text.index("What it takes")
    refused = operator.post(page_of(alone), form(act="start", where="take"))
    assert refused.status_code == 400
    assert "It would take the only ready replica of chat" in refused.content.decode()
    assert said in refused.content.decode()
    assert 'name="take_last"' in refused.content.decode()
    assert bench("--slo", SLO, "--levels", "1,2,4", "--seconds", "30", "--take", "--preview").startswith(said)
    with pytest.raises(CommandError, match="--take-last"):
        bench("--slo", SLO, "--take", "--reason", "a try")
    otto = person("otto", is_operator=True)
    assert otto.post("/api/v1/bench_runs", body(where="take", preview=True), format="json").json()["take"]["is_last"] is True
    assert otto.post("/api/v1/bench_runs", body(where="take"), format="json").json()["error"]["fields"].keys() == {"take_last"}
    assert not BenchRun.objects.exists()
    assert otto.post("/api/v1/bench_runs", body(where="take", take_last=True), format="json").status_code == 201
    BenchRun.objects.all().delete()
    assert operator.post(page_of(alone), form(act="start", where="take", take_last="on")).status_code == 302


def test_a_replica_under_test_is_marked_on_its_page(live: Fleet, operator: Any) -> None:
    replica = live.profile.replicas.order_by("name").first()
    run = BenchRun.objects.create(
        profile=live.profile, replica=replica, state="testing", heartbeat_at=datetime.now(UTC), slo_text=SLO
    )
    link = reverse("sweep", args=[run.pk])
    text = operator.get(reverse("replica", args=[replica.name])).content.decode()
    assert f'under test</span> · <a href="{link}">sweep →</a>' in text
    assert link in operator.get(reverse("model", args=["chat"])).content.decode()
    (node,) = replica.nodes
    assert link in operator.get(reverse("node", args=[node])).content.decode()
    Replica.objects.filter(pk=replica.pk).update(is_registered=True)
    assert link in operator.get(reverse("engines")).content.decode()


def test_a_replica_under_test_is_said_so_by_the_api_and_to_prometheus_and_keeps_its_state(live: Fleet) -> None:
    replica = live.profile.replicas.order_by("name").first()
    BenchRun.objects.create(profile=live.profile, replica=replica, state="testing", heartbeat_at=datetime.now(UTC), slo_text=SLO)
    rows = person("otto", is_operator=True).get("/api/v1/replicas").json()["results"]
    assert [(row["state"], row["under_test"]) for row in rows] == [("ready", True), ("ready", False)]
    found = {family.name: family.samples for family in exporter.fleet(datetime.now(UTC))}
    assert [sample.value for sample in found["llmgw_replicas_under_test"]] == [1]
    assert [sample.value for sample in found["llmgw_replicas"]] == [2]
    later = datetime.now(UTC) + timedelta(minutes=1)
    found = {family.name: family.samples for family in exporter.fleet(later)}
    assert [sample.value for sample in found["llmgw_replicas_under_test"]] == [0]


def test_a_run_that_is_done_leads_to_its_measurement(live: Fleet, operator: Any) -> None:
    run = BenchRun.objects.create(profile=live.profile, state="done", measurement=live.measurement, slo_text=SLO)
    text = operator.get(reverse("sweep", args=[run.pk])).content.decode()
    assert reverse("measurement", args=[live.measurement.pk]) in text
