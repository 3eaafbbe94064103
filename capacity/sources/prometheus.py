"""Loads from a Prometheus server that scrapes the engines: one query for up to 500 of them, the same table of names.

The query asks for a minute of raw samples, so that each has the time at which the server read it: an engine that the server no
longer reaches has old samples, which age and become unknown, and no sum falls because a target is missing. Replicas are found by
their `instance`, host:port as the server scrapes them. Of one engine only the samples of its newest scrape count, and where two
jobs or two servers of a pair scrape it, those of one of them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import aiohttp

from capacity.ports import Sample
from capacity.sources.engines import Skipped, Target
from capacity.sources.exposition import Series
from capacity.sources.names import WANTED
from capacity.sources.prometheus_api import Answer, ApiError, Row, read_answer
from capacity.sources.reading import read_series

WINDOW = "1m"
ONE_SCRAPE_SECONDS = 0.9  # samples of one scrape have one time; engines that write times of their own stay within a second
AHEAD = timedelta(seconds=10)
QUERY_PATH = "/api/v1/query"
# What servers and jobs put on a series beside the engine's own labels: two that differ in these alone are two views of one.
VIEW_LABELS = ("job", "prometheus", "prometheus_replica")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where to ask. `url`: the base that `/api/v1/query` is put behind; `token`: sent as a bearer token, and never shown."""

    url: str
    token: str = field(default="", repr=False)
    seconds: float = 5.0
    answer_bytes: int = 128 * 1024 * 1024


async def ask(
    server: Server, targets: Sequence[Target], *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> dict[str, Sample | Skipped]:
    """Every target's newest sample, with the time at which the server read it; a sentence for each that it says nothing of."""
    by_instance = instances(targets)
    try:
        answer = read_answer(await _query(server, query_text(by_instance))) if by_instance else Answer(rows=())
    except ApiError as error:
        sentence = str(error)
        return {target.replica: Skipped(sentence.replace(server.token, "…") if server.token else sentence) for target in targets}
    return readings(answer, targets, now())


def instance(url: str) -> str | None:
    """`host:port` of an engine's URL as Prometheus writes it; None where it is no URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    host = parts.hostname or ""
    return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}") if host else None


def instances(targets: Iterable[Target]) -> dict[str, list[str]]:
    """Instance → the replicas that lie there."""
    found: dict[str, list[str]] = {}
    for target in targets:
        if (name := instance(target.url)) is not None:
            found.setdefault(name, []).append(target.replica)
    return found


def query_text(wanted: Iterable[str]) -> str:
    """PromQL: a minute of the samples of every metric of the table, in both spellings, and of `up`, of those instances."""
    where = "|".join(re.escape(name) for name in sorted(wanted))
    return f"{{__name__=~`up|{_NAMES}`,instance=~`{where}`}}[{WINDOW}]"


def readings(answer: Answer, targets: Sequence[Target], now: datetime) -> dict[str, Sample | Skipped]:
    """What an answer says of each target (pure)."""
    rows: dict[str, list[Row]] = {}
    for row in answer.rows:
        rows.setdefault(row.labels.get("instance", ""), []).append(row)
    shared = {name for name, replicas in instances(targets).items() if len(replicas) > 1}
    return {target.replica: _reading(instance(target.url), rows, shared, answer.warnings, now) for target in targets}


def _reading(
    name: str | None, rows: Mapping[str, Sequence[Row]], shared: set[str], warnings: Sequence[str], now: datetime
) -> Sample | Skipped:
    if name is None:
        return Skipped("Its URL is not valid.")
    if name in shared:
        return Skipped(f"Several replicas lie at {name}: Prometheus does not tell them apart.")
    view = _newest_view(rows.get(name, ()))
    if not view:
        warned = f" It warned: {warnings[0]}" if warnings else ""
        return Skipped(f"The Prometheus server has no metrics of {name} from the last minute.{warned}")
    targets = [row for row in view if _metric(row) == "up"]
    if len(targets) > 1:
        return Skipped(
            f"The Prometheus server has {len(targets)} targets by the name of {name}: which of them is meant is unknown."
        )
    if any(up.points[-1][1] == 0 for up in targets):
        return Skipped(f"The Prometheus server cannot read {name} (up is 0).")
    return _newest_scrape(name, _engine_rows(view), now)


def _newest_view(rows: Sequence[Row]) -> list[Row]:
    views: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        views.setdefault(tuple(row.labels.get(label, "") for label in VIEW_LABELS), []).append(row)
    return max(views.values(), key=lambda view: (_read_at(_engine_rows(view)), _read_at(view)), default=[])


def _read_at(rows: Iterable[Row]) -> float:
    return max((row.points[-1][0] for row in rows), default=0.0)


def _engine_rows(view: Iterable[Row]) -> list[Row]:
    return [row for row in view if _metric(row) != "up"]


def _newest_scrape(name: str, rows: Sequence[Row], now: datetime) -> Sample | Skipped:
    if not rows:
        return Skipped(f"The Prometheus server reads {name} and keeps no known engine's metrics of it.")
    newest = _read_at(rows)
    at = datetime.fromtimestamp(newest, UTC)
    if at > now + AHEAD:
        return Skipped(f"The Prometheus server's clock is ahead: it read {name} at {at:%H:%M:%S} UTC.")
    return read_series(_series(rows, newest - ONE_SCRAPE_SECONDS)).sample(at)


def _series(rows: Iterable[Row], since: float) -> Series:
    series: Series = {}
    for row in rows:
        at, value = row.points[-1]
        if at >= since:
            labels = tuple(sorted(pair for pair in row.labels.items() if pair[0] != "__name__"))
            series.setdefault(_metric(row), {})[labels] = value
    return series


def _metric(row: Row) -> str:
    return row.labels.get("__name__", "").replace(":", "_")


def _either_spelling(name: str) -> str:
    """A prefix may end with a colon, and Ray puts one of its own in front."""
    return name.replace("_", "[:_]", 2 if name.startswith("ray_") else 1)


_NAMES = "|".join(_either_spelling(name) for name in sorted(WANTED))


async def _query(server: Server, text: str) -> bytes:
    headers = {"Accept": "application/json", **({"Authorization": f"Bearer {server.token}"} if server.token else {})}
    try:
        async with (
            asyncio.timeout(server.seconds),
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, headers=headers) as session,
            session.post(f"{server.url.rstrip('/')}{QUERY_PATH}", data={"query": text}, allow_redirects=False) as response,
        ):
            return await _body(response, server)
    except ApiError:
        raise
    except TimeoutError:
        raise ApiError(f"The Prometheus server gave no complete answer within {server.seconds:g} s.") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        # words of ours: an exception's own may carry the URL
        raise ApiError(f"The Prometheus server cannot be asked ({type(error).__name__}).") from None


async def _body(response: aiohttp.ClientResponse, server: Server) -> bytes:
    """The whole answer: with JSON in it whatever its status, as this API sends its errors."""
    if response.status != 200 and response.content_type != "application/json":
        raise ApiError(f"The Prometheus server answered with status {response.status}.")
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > server.answer_bytes:
            raise ApiError(f"The Prometheus server answered with more than {server.answer_bytes} bytes.")
    return bytes(body)
