"""A sweep asked for by page, API and command: the same facts, the same refusals, the same people."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from capacity import exporter
from capacity.briefings import sweep_facts
from capacity.measuring import worker
from capacity.measuring.wish import Wish
from capacity.models import BenchRun, LanguageModel, Replica, Slo
from capacity.tests.api_people import member, person
from capacity.tests.factories import make_scope
from capacity.tests.fleet import Fleet
from capacity.tests.pages import HOSTILE, make_person
from capacity.tests.test_measuring_life import STAGES, Clock

pytestmark = pytest.mark.django_db

SLO = "ttft p95 500"


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setattr("capacity.tests.fleet.START", datetime.now(UTC))
    fleet = Fleet(min_replicas=2, max_replicas=4)
    fleet.passes(2)
    fleet.share(8)
    monkeypatch.setattr(sweep_facts, "deps", lambda: fleet.deps)
    return fleet


@pytest.fixture
def operator(client: Any) -> Any:
    client.force_login(make_person("olga", is_operator=True))
    return client


def page_of(fleet: Fleet) -> str:
    return reverse("measure", args=[fleet.profile.pk])


def form(**changes: Any) -> dict[str, Any]:
    usual = {"where": "own", "slo": SLO, "levels": "1,2,4", "seconds": 30, "input_tokens": 512, "output_tokens": 128}
    return {**usual, "api": "chat", "endpoint": "", "reason": "new engine", **changes}


def body(**changes: Any) -> dict[str, Any]:
    return {"model": "chat", "profile": "small", "slo": SLO, "levels": "1,2,4", "reason": "new engine", **changes}


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
    assert text.count("<circle") == 9
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


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(worker, "sweep", clock.sweep)
    return clock


def bench(*words: str) -> str:
    out = StringIO()
    call_command("bench", "chat", "small", *words, stdout=out, stderr=StringIO())
    return out.getvalue()


OUTSIDE = ("--endpoint", "http://127.0.0.1:9", "--slo", "ttft p95 500, tpot p95 50", "--reason", "a try")


def test_the_command_measures_here_with_a_line_for_each_level(live: Fleet, here: Clock) -> None:
    text = bench(*OUTSIDE, "--levels", "1,2,4")
    assert "4 in flight · 400.0 tokens/s · ttft p95 900 ms" in text
    assert "chat · small: 2 in flight, 200.0 tokens/s." in text
    assert BenchRun.objects.get().state == "done"


def test_the_command_writes_no_line_for_collectors_of_logs(live: Fleet, here: Clock, caplog: Any) -> None:
    with caplog.at_level(logging.INFO):
        bench(*OUTSIDE, "--levels", "1,2,4")
        assert not caplog.records
        logging.getLogger("capacity").info("others may again")
        assert caplog.records


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


def test_an_address_outside_may_call_the_model_otherwise(live: Fleet, here: Clock) -> None:
    found = json.loads(bench(*OUTSIDE, "--served-name", "served/m", "--json"))
    assert (found["served_name"], here.asked[0].served_name, here.asked[0].model) == ("served/m", "served/m", live.model.name)
    answer = person("otto", is_operator=True).post("/api/v1/bench_runs", body(served_name="x"), format="json")
    assert answer.json()["error"]["fields"].keys() == {"served_name"}


def test_the_command_gives_one_document(live: Fleet, here: Clock) -> None:
    found = json.loads(bench(*OUTSIDE, "--json"))
    assert found["state"] == "done"
    assert found["measurement"] == BenchRun.objects.get().measurement_id


def test_ctrl_c_stops_it_cleanly(live: Fleet, here: Clock) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    here.each = interrupt
    with pytest.raises(CommandError, match="It was interrupted") as refused:
        bench(*OUTSIDE)
    assert refused.value.returncode == 3
    assert BenchRun.objects.get().state == "stopped"


def test_the_commands_preview_changes_nothing(live: Fleet) -> None:
    text = bench("--slo", SLO, "--take", "--preview")
    assert "is taken: 1 of 2 ready replicas stay, 20 → 10 requests in flight" in text
    assert json.loads(bench("--slo", SLO, "--preview", "--json"))["likely_levels"] == 9
    assert not BenchRun.objects.exists()


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("--slo", SLO), "Say why", 2),
        (("--slo", "", "--reason", "x"), "has no SLO", 1),
        (("--slo", SLO, "--levels", "-3", "--reason", "x"), "Levels are auto", 2),
        (("--slo", SLO, "--seconds", "0", "--reason", "x"), "Seconds of a level", 2),
        (("--slo", SLO, "--endpoint", "http://127.0.0.1:9", "--take", "--reason", "x"), "takes no replica", 2),
        (("--slo", SLO, "--served-name", "m", "--reason", "x"), "address outside", 2),
    ],
)
def test_the_command_refuses_in_one_sentence(live: Fleet, words: tuple[str, ...], said: str, code: int) -> None:
    with pytest.raises(CommandError, match=said) as refused:
        bench(*[word if not word.startswith("-3") else "0" for word in words])
    assert refused.value.returncode == code
    assert not BenchRun.objects.exists()


CANARY = "canary-5f2e81c0"


@pytest.fixture
def redis_here(settings: Any, redis_server: str, redis_client: Any) -> Any:
    settings.REDIS_URL = redis_server
    return redis_client


def of_token(**changes: Any) -> dict[str, Any]:
    return {"endpoint": "http://127.0.0.1:9", "slo": "ttft p95 500, tpot p95 50", "token": CANARY, "same_prompt": True, **changes}


def test_a_token_is_sent_once_and_stands_in_no_row_answer_page_or_log(
    live: Fleet, here: Clock, operator: Any, redis_here: Any, caplog: Any
) -> None:
    here.swept = replace(here.swept, why="Nobody answers.", ended="failed")
    answer = person("otto", is_operator=True).post("/api/v1/bench_runs", body(**of_token()), format="json")
    run = BenchRun.objects.get()
    (key,) = redis_here.keys("llmgw:bench:token:*")
    assert 0 < redis_here.ttl(key) <= 86_400
    said = [redis_here.get(key).decode(), answer.content.decode(), str(BenchRun.objects.values())]
    worker.run_queued()
    assert (here.asked[0].token, here.asked[0].same_prompt) == (CANARY, True)
    assert not redis_here.keys("llmgw:bench:token:*")
    said += [operator.get(reverse("sweep", args=[run.pk])).content.decode(), str(BenchRun.objects.values()), caplog.text]
    said += [operator.post(page_of(live), form(act=act, **of_token(levels="0"))).content.decode() for act in ("look", "start")]
    said += [repr(Wish(**of_token())), str(here.asked)]
    assert all(CANARY not in text for text in said)


def test_a_token_that_is_not_kept_any_more_ends_its_sweep_and_a_stop_forgets_it(
    live: Fleet, here: Clock, redis_here: Any
) -> None:
    operator = person("otto", is_operator=True)
    operator.post("/api/v1/bench_runs", body(**of_token()), format="json")
    (key,) = redis_here.keys("llmgw:bench:token:*")
    redis_here.set(key, "what somebody else wrote")
    worker.run_queued()
    assert "token is not kept any more" in BenchRun.objects.get().message
    assert not here.asked
    made = operator.post("/api/v1/bench_runs", body(**of_token()), format="json").json()["id"]
    operator.post(f"/api/v1/bench_runs/{made}/stop")
    assert not redis_here.keys("llmgw:bench:token:*")
    assert BenchRun.objects.get(pk=made).stopped_by == "otto"


@pytest.mark.parametrize("wrong", [{"endpoint": ""}, {"token": f"{CANARY} x"}, {"token": CANARY * 400}])
def test_a_token_that_cannot_be_is_refused_without_being_said(live: Fleet, redis_here: Any, wrong: dict[str, Any]) -> None:
    answer = person("otto", is_operator=True).post("/api/v1/bench_runs", body(**of_token(**wrong)), format="json")
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == ["token"]
    assert CANARY not in answer.content.decode()
    assert not BenchRun.objects.exists() and not redis_here.keys("llmgw:bench:token:*")


def test_where_redis_is_away_a_sweep_with_a_token_is_refused_and_none_is_stored(live: Fleet, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = person("otto", is_operator=True).post("/api/v1/bench_runs", body(**of_token()), format="json")
    assert "Redis is away" in answer.content.decode()
    assert not BenchRun.objects.exists()


def test_the_command_reads_the_token_of_a_file(live: Fleet, here: Clock, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{CANARY}\n")
    text = bench(*OUTSIDE, "--token-file", str(file), "--same-prompt")
    assert (here.asked[0].token, here.asked[0].same_prompt) == (CANARY, True)
    assert CANARY not in text
    file.write_text(f"{CANARY} and more")
    for path in (file, tmp_path / "none", tmp_path):
        with pytest.raises(CommandError) as refused:
            bench(*OUTSIDE, "--token-file", str(path))
        assert refused.value.returncode == 2
        assert str(path) in str(refused.value) and CANARY not in str(refused.value)


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
