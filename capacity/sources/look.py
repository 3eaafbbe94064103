"""One look at an engine before a person registers it: whether it answers, what it works on, which models it says it serves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp

from capacity.ports import Sample
from capacity.sources.address import CheckedResolver, Network, literal_fault
from capacity.sources.answers import DEFAULT_LIMITS, ask, base_url
from capacity.sources.engines import Skipped, Target, scrape

MOST_BYTES = 256 * 1024
MOST_MODELS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """`silence`: why it does not answer, empty where it does. `in_flight` None: unknown, and then `unread` says why.
    `serves` None: it does not say."""

    silence: str
    in_flight: int | None
    unread: str
    serves: tuple[str, ...] | None


def look(url: str, allowed: Sequence[Network] = ()) -> Look:
    """What can be read there now, within some five seconds. The address was checked before; each connection checks it again."""
    return asyncio.run(_look(url, allowed))


async def _look(url: str, allowed: Sequence[Network]) -> Look:
    answers, loads, serves = await asyncio.gather(
        ask({"": url}, allowed_networks=allowed),
        scrape([Target(replica="", url=url)], allowed_networks=allowed),
        _models(url, allowed),
    )
    sample, silence = loads[""], answers[""]
    in_flight = sample.in_flight if isinstance(sample, Sample) else None
    unread = sample.reason if isinstance(sample, Skipped) else "Its metrics lack this number."
    return Look(silence=silence, in_flight=in_flight, unread="" if in_flight is not None else unread, serves=serves)


async def _models(url: str, allowed: Sequence[Network]) -> tuple[str, ...] | None:
    """What `/v1/models` lists; None where it does not answer with such a list."""
    if literal_fault(urlsplit(url).hostname or "", allowed):
        return None
    connector = aiohttp.TCPConnector(resolver=CheckedResolver(allowed), force_close=True)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False) as session:
        try:
            async with asyncio.timeout(DEFAULT_LIMITS.seconds_each):
                return _names(await _body(session, f"{base_url(url)}/v1/models"))
        except (aiohttp.ClientError, OSError, ValueError):  # TimeoutError is an OSError
            return None


async def _body(session: aiohttp.ClientSession, url: str) -> bytes:
    body = bytearray()
    async with session.get(url, allow_redirects=False) as response:
        response.raise_for_status()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > MOST_BYTES:
                raise ValueError("too long")
    return bytes(body)


def _names(body: bytes) -> tuple[str, ...] | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    rows = document.get("data") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        return None
    names = [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
    return tuple(_printable(name[:200]) for name in names[:MOST_MODELS])


def _printable(name: str) -> str:
    """An engine's own words: without what a terminal would obey, and halves of characters that no page can send."""
    return "".join(character if character.isprintable() else "\ufffd" for character in name)
