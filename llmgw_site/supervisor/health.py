"""Is the site ready? It is asked as a browser would ask it."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass

TIMEOUT_SECONDS = 5.0
MAX_BODY_BYTES = 10_000
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (where to ask, not where to listen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`lacking`: in words, what keeps it from being ready."""

    answered: bool
    ready: bool
    lacking: str


def base_url(host: str, port: int) -> str:
    """Where a program on this machine reaches the site that listens on `host`."""
    reached = ANY_ADDRESS.get(host, host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def host_header(allowed: list[str]) -> str:
    """A name that the site answers to."""
    plain = [name.lstrip(".") for name in allowed if name != "*"]
    return next((name for name in plain if name in {"localhost", "127.0.0.1"}), plain[0] if plain else "localhost")


def readiness(host: str, port: int, *, name: str) -> Answer:
    """Ask /readyz once."""
    connection = http.client.HTTPConnection(ANY_ADDRESS.get(host, host), port, timeout=TIMEOUT_SECONDS)
    try:
        # the second header is for a site that stands behind a proxy with TLS
        connection.request("GET", "/readyz", headers={"Host": name, "X-Forwarded-Proto": "https"})
        response = connection.getresponse()
        body = response.read(MAX_BODY_BYTES)
    except (OSError, http.client.HTTPException) as error:
        return Answer(answered=False, ready=False, lacking=str(error) or type(error).__name__)
    finally:
        connection.close()
    return Answer(answered=True, ready=response.status == 200, lacking=_lacking(response.status, body))


def _lacking(status: int, body: bytes) -> str:
    """`beat: no heartbeat yet; redis: does not answer` out of the page's checks."""
    try:
        checks = json.loads(body)["checks"]
        return "; ".join(f"{check}: {sentence}" for check, sentence in checks.items() if sentence != "ok")
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"/readyz answers with status {status}"
