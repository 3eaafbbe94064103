"""All figures, one after the other, in the database that the settings name (its tables made)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from . import model_page, plan, scrape, streams, whole_pass
from .sizes import Sizes
from .timing import Figure


def measure(sizes: Sizes) -> Iterator[Figure]:
    """Each figure as soon as it is there. The small parts come first: what has grown large makes every later one slower."""
    yield from scrape.measure(sizes)
    yield from streams.measure(sizes)
    yield from model_page.measure(sizes, datetime.now(UTC))
    yield from whole_pass.measure(sizes, datetime.now(UTC))
    yield from plan.measure(sizes)
