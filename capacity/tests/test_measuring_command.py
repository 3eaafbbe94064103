"""A sweep by command, and the bearer token of an address outside."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.urls import reverse

from capacity.measuring import worker
from capacity.measuring.wish import Wish
from capacity.models import BenchRun
from capacity.tests.api_people import person
from capacity.tests.fleet import Fleet
from capacity.tests.measuring import Clock
from capacity.tests.measuring_faces import OUTSIDE, SLO, as_operator, bench, body, clock_of_worker, form, live_fleet, page_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    return live_fleet(monkeypatch)


@pytest.fixture
def operator(client: Any) -> Any:
    return as_operator(client)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return clock_of_worker(monkeypatch)


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
