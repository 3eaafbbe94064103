"""What somebody wrote into JSON columns by hand, past every check: pages, API and passes survive it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse

from capacity.measuring.document import read_progress, read_stages
from capacity.models import BenchRun
from capacity.tests.api_people import person
from capacity.tests.factories import make_measurement, make_profile
from capacity.tests.pages import make_person

STAGE = '{"level": X, "requests": X, "tokens_per_second": X, "ttft": X, "tpot": {"p95": X}, "flags": X}'
PROGRESS = '{"doing": "testing", "level": X, "levels_done": X, "levels_left": X, "seconds_left": X, "finished": X}'
ODD = ["null", "[]", "{}", '"x"', "-1", "1e999", "true", "9" * 400, "[[]]", '{"p95": "x"}', '{"p95": [1]}', '"\\ud800"']


def write(row: Any, **columns: str) -> None:
    with connection.cursor() as cursor:
        for name, text in columns.items():
            cursor.execute(f"update {row._meta.db_table} set {name} = %s where id = %s", [text, row.pk])


@pytest.fixture
def pages(client: Any) -> Any:
    client.force_login(make_person("olga", is_operator=True))
    return client


@pytest.mark.django_db
def test_a_runs_page_and_the_api_show_what_can_be_read_of_it(pages: Any) -> None:
    if connection.vendor != "sqlite":
        return  # PostgreSQL takes no such number and no half character
    now = datetime.now(UTC)
    profile = make_profile()
    measurement = make_measurement(profile)
    runs = [BenchRun.objects.create(profile=profile, state=state, heartbeat_at=now) for state in ("testing", "done")]
    api = person("oscar", is_operator=True)
    for odd in ODD:
        stages = [odd, f"[{odd}]", f'[{STAGE.replace("X", odd)}, {{"level": {odd}}}, {{"level": 2}}, {{"level": 3}}]']
        write(measurement, evidence=stages[-1], self_check=stages[-1])
        for written in stages:
            for run in runs:
                write(run, stages=written, progress=PROGRESS.replace("X", odd))
            found = {pages.get(reverse("sweep", args=[run.pk])).status_code for run in runs}
            found |= {api.get(f"/api/v1/{path}").status_code for path in ("bench_runs", "measurements")}
            found.add(api.get(f"/api/v1/measurements/{measurement.pk}/export").status_code)
            assert found == {200}, written


def test_what_is_no_row_of_a_sweep_is_left_out_and_what_is_no_number_is_unknown() -> None:
    (row,) = read_stages(
        ["x", None, {"level": 10**400, "requests": True, "errors": 2, "ttft": {"p95": 1.5, "p99": -1}, "flags": 3}]
    )
    assert (row["level"], row["requests"], row["errors"], row["ttft"], row["tpot"], row["flags"]) == (
        None,
        None,
        2,
        {"p95": 1.5},
        {},
        [],
    )
    assert [read_stages(odd) for odd in (None, "x", {}, 3)] == [[]] * 4


def test_progress_that_says_nothing_is_empty() -> None:
    assert [read_progress(odd) for odd in (None, [], "x", {}, {"doing": 3})] == [{}] * 5
    assert read_progress({"doing": "testing", "level": "x", "levels_done": 2})["levels_done"] == 2
