"""What beat asks again and again ends in one line where a store is away."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError
from redis.exceptions import ConnectionError as RedisAway
from structlog.testing import capture_logs

from capacity import tasks


@pytest.mark.parametrize("fault", [OperationalError("database is locked"), RedisAway("refused\nand more")])
@pytest.mark.parametrize("how", [lambda task: task(), lambda task: task.apply().get()])
def test_a_store_that_is_away_is_one_line_and_no_trace(monkeypatch: Any, fault: Exception, how: Any) -> None:
    def fail(at: Any) -> None:
        raise fault

    monkeypatch.setattr(tasks.rollup, "prune", fail)
    with capture_logs() as lines:
        assert how(tasks.prune) is None
    (line,) = lines
    assert (line["event"], line["task"]) == ("task_failed", "capacity.tasks.prune")
    assert line["error"] == f"{type(fault).__name__}: {str(fault).splitlines()[0]}"


def test_a_defect_is_not_hidden(monkeypatch: Any) -> None:
    def fail(at: Any) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(tasks.rollup, "prune", fail)
    with pytest.raises(KeyError):
        tasks.prune()
