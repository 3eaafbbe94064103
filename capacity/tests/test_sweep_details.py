"""What a sweep knows of each level beyond its stage, out of evidence that anybody may have written."""

from __future__ import annotations

from typing import Any

import pytest

from capacity.sweep_details import level_details, sweep_facts

LEVEL = {
    "client_lag_ms": 1.5,
    "itl_ms": {"p95": 40.2},
    "engine_output_tokens_per_second": 199,
    "prefix_cache_hit_rate": 0.25,
    "error_kinds": {"status": 2},
    "first_error": "It answered with status 503.",
}


def test_levels_rise_and_say_what_they_know() -> None:
    found = level_details({"sweep": {"levels": {"16": {}, "2": LEVEL}}})
    assert [row.level for row in found] == ["2", "16"]
    assert (found[0].client_lag_ms, found[0].chunk_gap_p95_ms, found[0].engine_tokens_per_second) == (1.5, 40.2, 199)
    assert (found[0].hit_rate, found[0].errors) == (0.25, "2 × status: It answered with status 503.")
    assert (found[1].client_lag_ms, found[1].errors) == (None, "")


def test_how_it_was_asked_is_said_in_words() -> None:
    told = {"sweep": {"asked": {"api": "chat", "same_prompt": True}, "tokens_from": "usage", "output_pinned": False}}
    assert dict(sweep_facts(told)) == {
        "API": "chat",
        "tokens are counted by": "usage",
        "length of answers pinned": "no",
        "every request the same prompt": "yes",
    }


@pytest.mark.parametrize(
    "evidence",
    [None, [], {}, {"sweep": 3}, {"sweep": {"levels": []}}, {"sweep": {"levels": {"x": {}, "1": 7}, "asked": "y"}}],
)
def test_what_is_no_sweep_of_ours_says_nothing(evidence: Any) -> None:
    assert level_details(evidence) == [] == sweep_facts(evidence)
