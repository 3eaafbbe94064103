"""Whether engines answer at all: their health page, else their metrics. What they say there is nobody's business here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit, urlunsplit

import aiohttp

from capacity.sources.address import CheckedResolver, Network, literal_fault, metrics_url
from capacity.sources.engines import Limits, why_unreadable

HEALTH_PATH = "/health"
DEFAULT_LIMITS = Limits()


async def ask(
    urls: Mapping[str, str], *, limits: Limits = DEFAULT_LIMITS, allowed_networks: Sequence[Network] = ()
) -> dict[str, str]:
    """Engine → URL in, engine → empty (it answers) or why not, in a sentence without secrets; within `limits.seconds_in_all`."""
    slots = asyncio.Semaphore(limits.connections)
    connector = aiohttp.TCPConnector(limit=limits.connections, resolver=CheckedResolver(allowed_networks), force_close=True)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar, trust_env=False) as session:
        tasks = {name: asyncio.create_task(_answer(session, url, slots, limits, allowed_networks)) for name, url in urls.items()}
        if tasks:
            await asyncio.wait(tasks.values(), timeout=limits.seconds_in_all)
        found = {name: _outcome(task, limits) for name, task in tasks.items()}
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    return found


async def _answer(
    session: aiohttp.ClientSession, url: str, slots: asyncio.Semaphore, limits: Limits, allowed: Sequence[Network]
) -> str:
    """Two questions share one time: an engine that hangs on the first has none left for the second."""
    if fault := literal_fault(urlsplit(url).hostname or "", allowed):
        return fault
    async with slots:
        try:
            async with asyncio.timeout(limits.seconds_each):
                health = await _status(session, base_url(url) + HEALTH_PATH)
                metrics = health if health == 200 else await _status(session, metrics_url(url))
        except Exception as error:
            return why_unreadable(error, limits)
    return "" if metrics == 200 else f"Answered with status {health} at {HEALTH_PATH} and {metrics} at its metrics."


def base_url(url: str) -> str:
    """An engine's own root from its URL as people write it: with or without the `/v1` of its API, its `/metrics`, a query."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/").removesuffix("/metrics").removesuffix("/v1")
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


async def _status(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(url, allow_redirects=False) as response:
        return 200 if 200 <= response.status < 300 else response.status


def _outcome(task: asyncio.Task[str], limits: Limits) -> str:
    if task.done():
        return task.result()
    task.cancel()
    return f"Not asked: all questions together may take {limits.seconds_in_all:g} s."
