"""What a person asks of a sweep on page, API and command; a live fleet and a worker's clock for them."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse

from capacity.briefings import sweep_facts
from capacity.measuring import worker
from capacity.tests.fleet import Fleet
from capacity.tests.measuring import Clock
from capacity.tests.pages import make_person

SLO = "ttft p95 500"


def live_fleet(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setattr("capacity.tests.fleet.START", datetime.now(UTC))
    fleet = Fleet(min_replicas=2, max_replicas=4)
    fleet.passes(2)
    fleet.share(8)
    monkeypatch.setattr(sweep_facts, "deps", lambda: fleet.deps)
    return fleet


def as_operator(client: Any) -> Any:
    client.force_login(make_person("olga", is_operator=True))
    return client


def page_of(fleet: Fleet) -> str:
    return reverse("measure", args=[fleet.profile.pk])


def form(**changes: Any) -> dict[str, Any]:
    usual = {"where": "own", "slo": SLO, "levels": "1,2,4", "seconds": 30, "input_tokens": 512, "output_tokens": 128}
    return {**usual, "api": "chat", "endpoint": "", "reason": "new engine", **changes}


def body(**changes: Any) -> dict[str, Any]:
    return {"model": "chat", "profile": "small", "slo": SLO, "levels": "1,2,4", "reason": "new engine", **changes}


def clock_of_worker(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(worker, "sweep", clock.sweep)
    return clock


def bench(*words: str) -> str:
    out = StringIO()
    call_command("bench", "chat", "small", *words, stdout=out, stderr=StringIO())
    return out.getvalue()


OUTSIDE = ("--endpoint", "http://127.0.0.1:9", "--slo", "ttft p95 500, tpot p95 50", "--reason", "a try")
