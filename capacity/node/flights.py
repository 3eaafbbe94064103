"""How many requests a draining engine still has: asked of its own /metrics, as the pass asks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from capacity.ports import Sample
from capacity.sources.engines import Target, scrape


def in_flight(urls: Sequence[str]) -> Mapping[str, int | None]:
    """URL → running + waiting; None where the engine does not answer or does not say."""
    found = asyncio.run(scrape([Target(replica=url, url=url) for url in urls]))
    return {url: sample.in_flight if isinstance(sample := found.get(url), Sample) else None for url in urls}
