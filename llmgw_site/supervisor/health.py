"""Is the site ready? It is asked as a browser would ask it."""

from __future__ import annotations

import http.client
import json

TIMEOUT_SECONDS = 5.0
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  (where to ask, not where to listen)


def base_url(host: str, port: int) -> str:
    """Where a program on this machine reaches the site that listens on `host`."""
    reached = ANY_ADDRESS.get(host, host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def host_header(allowed: list[str]) -> str:
    """A name that the site answers to."""
    plain = [name.lstrip(".") for name in allowed if name != "*"]
    return next((name for name in plain if name in {"localhost", "127.0.0.1"}), plain[0] if plain else "localhost")


def readiness(host: str, port: int, *, name: str) -> str | None:
    """None when the site says that it is ready; else what it says instead."""
    connection = http.client.HTTPConnection(ANY_ADDRESS.get(host, host), port, timeout=TIMEOUT_SECONDS)
    try:
        # the second header is for a site that stands behind a proxy with TLS
        connection.request("GET", "/readyz", headers={"Host": name, "X-Forwarded-Proto": "https"})
        answer = connection.getresponse()
        body = answer.read(10_000)
    except (OSError, http.client.HTTPException) as error:
        return f"it does not answer ({error})"
    finally:
        connection.close()
    return None if answer.status == 200 else _reasons(answer.status, body)


def _reasons(status: int, body: bytes) -> str:
    try:
        return f"{status} {json.dumps(json.loads(body))[:400]}"
    except ValueError:
        return f"status {status}"
