"""An endpoint that says back what it was sent: its token stands in nothing that a sweep gives."""

from __future__ import annotations

import pytest

from capacity.bench.asked import Swept
from capacity.bench.scrub import scrubbed
from capacity.domain.measurement.types import Setting

TOKEN = "canary-5f2e81c0"


def test_a_token_that_is_said_back_is_hidden_wherever_it_stands() -> None:
    told = Setting(tool="llmgw", engine=f"vllm {TOKEN}", hints={"engine root": f"/x/{TOKEN}"})
    swept = Swept(setting=told, stages=(), ended="failed", why=f"It says: {TOKEN}.", evidence={"a": [{"b": (TOKEN, 1)}]})
    found = scrubbed(swept, TOKEN)
    assert TOKEN not in repr(found)
    assert (found.why, found.evidence) == ("It says: ***.", {"a": [{"b": ("***", 1)}]})


@pytest.mark.parametrize("token", [None, "is"])
def test_without_a_token_nothing_changes(token: str | None) -> None:
    swept = Swept(setting=Setting(tool="llmgw"), stages=(), ended="failed", why="This is it.")
    assert scrubbed(swept, token) == swept
