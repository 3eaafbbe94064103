"""Logs of engines: bounded, readable, without secrets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from capacity.node.logs import KEEP_SECONDS, bound, last_words, masked, prune, tail


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer ***"),
        ("redis://:pa55@host:6379/0", "redis://***@host:6379/0"),
        ("--hf-token hf_ABCDEFGHIJ", "--hf-token ***"),
        ("api_key='sk-live-123456789'", "api_key='***'"),
        ('{"password": "hunter2222"}', '{"password": "***"}'),
        ("AWS_SECRET_ACCESS_KEY=abcdEFGH", "AWS_SECRET_ACCESS_KEY=***"),
        ("max_tokens=4096 throughput: 12 tokens/s", "max_tokens=4096 throughput: 12 tokens/s"),
        ("GET http://127.0.0.1:20000/v1 200", "GET http://127.0.0.1:20000/v1 200"),
    ],
)
def test_what_looks_like_a_secret_is_masked_and_nothing_else(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_a_tail_is_whole_lines_of_safe_text(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes("ö".encode()[1:] + b"\xff\x00\x1b[31mred\x1b[0m\r\nlast " + "🦙".encode() + b"\n")
    assert tail(path) == "\ufffd\ufffdred\nlast 🦙\n"
    path.write_text("password=first-line-secret\n" + "x" * 50)
    assert tail(path, 60) == "x" * 50


def test_a_missing_log_is_empty(tmp_path: Path) -> None:
    assert tail(tmp_path / "none.log") == ""
    bound(tmp_path / "none.log")
    assert not list(tmp_path.iterdir())


def test_last_words_are_at_most_2000_characters_and_the_last(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"line {number} of the engine\n" for number in range(1000)))
    words = last_words(path)
    assert len(words) <= 2000
    assert words.startswith("line ")
    assert words.endswith("line 999 of the engine")
    path.write_text("y" * 9000)
    assert last_words(path) == "y" * 2000


def test_a_log_stays_within_two_files_of_the_bound_while_an_engine_writes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("ab", buffering=0) as engine:
        for number in range(49):
            engine.write(f"{number:04} ".encode() * 90)
            bound(path, 1000)
            assert path.stat().st_size <= 1000
        engine.write(b"end")
        bound(path, 1000)
    assert path.read_bytes().endswith(b"end")
    assert b"\0" not in path.read_bytes()
    assert {file.name: file.stat().st_size <= 1000 for file in tmp_path.iterdir()} == {"a.log": True, "a.log.1": True}


def test_logs_of_replicas_that_are_gone_are_deleted_after_a_day(tmp_path: Path) -> None:
    old = [tmp_path / name for name in ("kept.log", "kept.log.1", "gone.log", "gone.log.1")]
    for path in [*old, tmp_path / "young.log"]:
        path.write_text("x")
    for path in old:
        at = path.stat().st_mtime - KEEP_SECONDS - 1
        os.utime(path, (at, at))
    prune(tmp_path, {tmp_path / "kept.log"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.log", "kept.log.1", "young.log"]
