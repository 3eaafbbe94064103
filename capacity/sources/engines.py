"""Reading many engines' /metrics at once, within bounds. What an answer says is in reading.py."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urljoin, urlsplit

import aiohttp

from capacity.ports import Sample
from capacity.sources.address import CheckedResolver, Network, RefusedAddress, literal_fault, metrics_url
from capacity.sources.reading import read_engine, why_no_engine

ACCEPT = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "identity"}

LARGE_CHARACTERS = 512 * 1024  # a vLLM of sixteen ranks
MOST_LARGE = 32
_LARGE = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large-answer")

STATUS_HINTS = {
    400: ": a llama.cpp router wants its URL to end with ?model=NAME",
    401: ": its metrics want a key, and llmgw sends none",
    403: ": its metrics are not for everybody",
    404: ": there are no metrics at that path",
    501: ": llama.cpp has metrics only when it is started with --metrics",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A replica and its base URL (`/metrics` is put behind it)."""

    replica: str
    url: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A replica that could not be read, and why, in a sentence without secrets."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    connections: int = 64
    seconds_each: float = 3.0
    seconds_in_all: float = 5.0
    answer_bytes: int = 2 * 1024 * 1024


async def scrape(
    targets: Sequence[Target],
    *,
    limits: Limits = Limits(),
    allowed_networks: Sequence[Network] = (),
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> dict[str, Sample | Skipped]:
    """Read all targets at once; every replica is in the answer, which comes within `limits.seconds_in_all`.

    `allowed_networks`: addresses that are read although they are refused by default (address.py)."""
    slots = asyncio.Semaphore(limits.connections)
    async with _session(limits, allowed_networks) as session:
        reader = _Reader(session, limits, allowed_networks, now)
        tasks = {target.replica: asyncio.create_task(reader.read(target, slots)) for target in _shuffled(targets)}
        if not tasks:
            return {}
        await asyncio.wait(tasks.values(), timeout=limits.seconds_in_all)
        results = {replica: _outcome(task, limits) for replica, task in tasks.items()}
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    return results


async def fetch(url: str, *, limits: Limits = Limits(), allowed_networks: Sequence[Network] = ()) -> str | Skipped:
    """What one endpoint answers at its /metrics, within the same bounds."""
    async with _session(limits, allowed_networks) as session:
        return await _Reader(session, limits, allowed_networks).text(url)


def _session(limits: Limits, allowed: Sequence[Network]) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limits.connections, resolver=CheckedResolver(allowed), force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        headers=ACCEPT,
    )


class _Unreadable(Exception):
    """A sentence: why an answer cannot be used."""


class _Reader:
    def __init__(
        self,
        session: aiohttp.ClientSession,
        limits: Limits,
        allowed: Sequence[Network],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._session = session
        self._limits = limits
        self._allowed = allowed
        self._now = now
        self._large = 0

    async def read(self, target: Target, slots: asyncio.Semaphore) -> Sample | Skipped:
        async with slots:
            text = await self.text(target.url)
        if isinstance(text, Skipped):
            return text
        return self._sample(text) if len(text) <= LARGE_CHARACTERS else await self._in_line(text)

    async def _in_line(self, text: str) -> Sample | Skipped:
        """Large answers wait for each other, in a thread of their own: those of usual size are not kept up by them."""
        if self._large >= MOST_LARGE:
            return Skipped(f"Not read: {MOST_LARGE} others answered with more than {LARGE_CHARACTERS} characters too.")
        self._large += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(_LARGE, self._sample, text)
        finally:
            self._large -= 1

    async def text(self, url: str) -> str | Skipped:
        try:
            async with asyncio.timeout(self._limits.seconds_each):
                return await self._get(metrics_url(url))
        except Exception as error:
            return Skipped(why_unreadable(error, self._limits))

    async def _get(self, url: str) -> str:
        answer = await self._get_once(url)
        if isinstance(answer, _Redirect):
            answer = await self._get_once(answer.url)
        if isinstance(answer, _Redirect):
            raise _Unreadable("Redirects twice.")
        return answer

    async def _get_once(self, url: str) -> str | _Redirect:
        if fault := literal_fault(urlsplit(url).hostname or "", self._allowed):
            raise _Unreadable(fault)
        async with self._session.get(url, allow_redirects=False) as response:
            if response.status in (301, 302, 303, 307, 308):
                return _Redirect(_same_host(url, response.headers.get("Location", "")))
            if response.status != 200:
                raise _Unreadable(f"Answered with status {response.status}{STATUS_HINTS.get(response.status, '')}.")
            if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise _Unreadable("Answered compressed, which was not asked for.")
            return await self._text(response)

    async def _text(self, response: aiohttp.ClientResponse) -> str:
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > self._limits.answer_bytes:
                raise _Unreadable(f"Answered with more than {self._limits.answer_bytes} bytes.")
        return body.decode("utf-8", "replace")

    def _sample(self, text: str) -> Sample | Skipped:
        reading = read_engine(text)
        return Skipped(why_no_engine(text)) if reading.engine is None else reading.sample(self._now())


@dataclass(frozen=True, slots=True)
class _Redirect:
    url: str


def _same_host(url: str, location: str) -> str:
    """Where a redirect leads, if it stays on the host and port it came from."""
    target = urljoin(url, location)
    if not location or urlsplit(target)[:2] != urlsplit(url)[:2]:
        raise _Unreadable("Redirects to another host, which is not followed.")
    return target


def _shuffled(targets: Sequence[Target]) -> list[Target]:
    """In another order each time, so that a crowd of hanging engines does not always hide the same others."""
    once = [*{target.replica: target for target in targets}.values()]
    return random.sample(once, len(once))


def _outcome(task: asyncio.Task[Sample | Skipped], limits: Limits) -> Sample | Skipped:
    if task.done():
        return task.result()
    task.cancel()
    return Skipped(f"Not read: all readings together may take {limits.seconds_in_all:g} s.")


def why_unreadable(error: Exception, limits: Limits) -> str:
    """What went wrong, in words of ours: an exception's own text may carry a URL with its secrets."""
    if isinstance(error, _Unreadable):
        return str(error)
    refused = _refused(error)
    if refused is not None:
        return str(refused)
    if isinstance(error, TimeoutError):
        return f"No complete answer within {limits.seconds_each:g} s."
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError | ValueError):
        return "Its URL is not valid."
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "Its host name does not resolve."
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"Cannot be connected to ({error.os_error.strerror or 'no route'})."
    return f"The answer broke off or is no HTTP ({type(error).__name__})."


def _refused(error: BaseException | None) -> RefusedAddress | None:
    """The refusal behind an error: aiohttp wraps what its resolver raises."""
    for _ in range(5):
        if error is None or isinstance(error, RefusedAddress):
            return error
        error = getattr(error, "os_error", None) or error.__cause__
    return None
