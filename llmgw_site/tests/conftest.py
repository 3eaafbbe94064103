"""A state folder for children, in which nothing is left running."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capacity.node import processes
from llmgw_site.supervisor.child import read_records

from .waiting import until


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "log").mkdir()
    (tmp_path / "run").mkdir()
    yield tmp_path
    for record in read_records(tmp_path):
        processes.end(record.pid, record.birth, force=True)
        until(lambda record=record: not isinstance(processes.look(record.pid, record.birth), processes.Alive))
