"""What a stage's flags are called."""

from __future__ import annotations

import pytest

from capacity.domain.measurement.words import flag_words

from .sweeps import make_stage


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"requests": 3}, ["weak: 3 finished, under 3 × 8"]),
        ({"requests": 24}, ["weak: cut off, or its client could not keep up"]),
        ({"requests": 24, "flags": {"simulated"}}, ["simulated: no engine was measured"]),
    ],
)
def test_a_weak_stage_says_which_of_the_reasons_it_is(found, words):
    flags = frozenset(found.pop("flags", {"weak"}))
    assert flag_words(make_stage(8, 80.0, 100.0, flags=flags, **found)) == words
