"""Is an engine well? One GET of its own health page each, all at once, so that a hanging one delays nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import aiohttp

PROBE_TIMEOUT_SECONDS = 1.0
_CONNECTIONS = 64


def probe(urls: Sequence[str]) -> dict[str, bool]:
    """URL → whether it answered 200 within a second. Redirects and proxies are not followed, bodies not read."""
    return asyncio.run(_probe_all(urls)) if urls else {}


async def _probe_all(urls: Sequence[str]) -> dict[str, bool]:
    timeout = aiohttp.ClientTimeout(total=PROBE_TIMEOUT_SECONDS)
    connector = aiohttp.TCPConnector(limit=_CONNECTIONS, force_close=True)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector, trust_env=False) as session:
        return dict(zip(urls, await asyncio.gather(*(_probe(session, url) for url in urls)), strict=True))


async def _probe(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url, allow_redirects=False) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return False
