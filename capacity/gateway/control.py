"""The gateway's side of the control plane: asks for endpoints, pushes loads. Neither ever raises for what the other side does."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import aiohttp

from capacity.gateway.routing import Endpoints, parse_endpoints

logger = logging.getLogger(__name__)

ENDPOINTS = "/api/v1/endpoints"
LOAD = "/api/v1/load"
SECONDS_A_CALL = 5.0
MAX_ANSWER_BYTES = 8 * 1024 * 1024

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """Where the control plane is, and the file whose one line is the token (read anew each time: tokens are changed)."""

    url: str
    token_file: Path
    pool: str


class Control:
    def __init__(self, session: aiohttp.ClientSession, api: Api) -> None:
        self._session = session
        self._api = api
        self._trouble: dict[str, str] = {}

    async def endpoints(self) -> Endpoints | None:
        """The endpoints of the pool; None where they cannot be had now."""
        return await self._call("GET", ENDPOINTS, None, _endpoints)

    async def push(self, document: dict[str, object]) -> bool:
        return await self._call("POST", LOAD, document, lambda answer: True) is not None

    async def _call(self, method: str, path: str, document: object, read: Callable[[object], Answer]) -> Answer | None:
        """What `read` makes of the answer's JSON ({} where it has no body), or None; trouble and its end are logged once."""
        try:
            async with asyncio.timeout(SECONDS_A_CALL):
                answer = read(await self._exchange(method, self._api.url + path, document))
        except (aiohttp.ClientError, OSError, ValueError, RecursionError) as failed:  # TimeoutError is an OSError
            self._report(path, _words(failed))
            return None
        self._report(path, None)
        return answer

    async def _exchange(self, method: str, url: str, document: object) -> object:
        headers = {"Authorization": f"Bearer {self._token()}", "Accept": "application/json"}
        async with self._session.request(
            method, url, params={"pool": self._api.pool}, json=document, headers=headers, allow_redirects=False
        ) as response:
            if not 200 <= response.status < 300:
                raise ValueError(f"it answered with status {response.status}")
            body = await _read(response)
        return json.loads(body) if body else {}

    def _token(self) -> str:
        token = self._api.token_file.read_text(encoding="ascii").strip()
        if not token or not token.isprintable():
            raise ValueError("the token's file holds no token")
        return token

    def _report(self, path: str, trouble: str | None) -> None:
        if trouble == self._trouble.get(path):
            return
        if trouble is None:
            del self._trouble[path]
            logger.info("The control plane answers %s again.", path)
        else:
            self._trouble[path] = trouble
            logger.warning("The control plane fails at %s (%s); going on with what it said last.", path, trouble)


def _endpoints(answer: object) -> Endpoints:
    known = parse_endpoints(answer)
    if known is None:
        raise ValueError("it answered no list of endpoints")
    return known


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise ValueError(f"it answered with more than {MAX_ANSWER_BYTES} bytes")
    return bytes(body)


def _words(failed: Exception) -> str:
    """The trouble in words; never an exception's own text, which may carry a header or a URL."""
    if isinstance(failed, UnicodeError | json.JSONDecodeError):
        return "it answered no JSON, or the token's file is no text"
    if isinstance(failed, ValueError) and type(failed) is ValueError:
        return str(failed)
    if isinstance(failed, OSError) and failed.strerror:
        return failed.strerror
    return type(failed).__name__
