"""The site as a person starts it: up, ended, killed and adopted; ports, folders and steps that do not work."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from llmgw_site.tests.waiting import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
DEADLINE_SECONDS = 150
SETTINGS = ("LLMGW_", "DATABASE_URL", "REDIS_URL", "DJANGO_", "PYTEST_")


def environment(folder: Path, **given: str) -> dict[str, str]:
    """A person's own environment: nothing of the tests' settings."""
    return {key: value for key, value in os.environ.items() if not key.startswith(SETTINGS)} | {"LLMGW_VAR": str(folder)} | given


def command(port: int, *options: str) -> list[str]:
    return [sys.executable, "-m", "llmgw_site.supervisor", "--port", str(port), "--no-demo", *options]


@contextmanager
def supervisor(folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command(port), cwd=ROOT, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.communicate(timeout=DEADLINE_SECONDS)


def read_until(process: subprocess.Popen[str], pattern: str) -> str:
    """All that it says up to a line that fits. A supervisor that hangs is killed, which ends what it says."""
    said = ""
    watchdog = threading.Timer(DEADLINE_SECONDS, process.kill)
    watchdog.start()
    try:
        while not re.search(pattern, said):
            line = process.stdout.readline()
            assert line, f"it ended or hung after: {said}"
            said += line
    finally:
        watchdog.cancel()
    return said


def ends(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=DEADLINE_SECONDS)
    return process.returncode


def children(folder: Path) -> dict[str, int]:
    rows = [json.loads(path.read_text()) for path in (folder / "run").glob("*.json")]
    return {row["name"]: row["pid"] for row in rows}


def processes_of(folder: Path) -> list[psutil.Process]:
    """All that have this state folder in their environment or on their command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(folder) in process.environ().get("LLMGW_VAR", "") or str(folder) in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def run(port: int, folder: Path, **given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(port),
        cwd=ROOT,
        env=environment(folder, **given),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )


def test_a_site_starts_survives_its_supervisor_and_ends_without_a_trace(tmp_path):
    port = free_port()
    with supervisor(tmp_path, port) as first:
        said = read_until(first, r"llmgw (answers|is ready)")
        assert re.search(r"user admin, password \S{16} ", said)
        assert f"http://127.0.0.1:{port}" in said
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/login/", timeout=30) as page:
            assert page.status == 200
        before = children(tmp_path)
        assert set(before) == {"redis", "web", "worker", "bench", "beat", "node"}

        second = run(port + 1, tmp_path)
        assert second.returncode == 1
        assert re.fullmatch(rf"llmgw runs already on .*process {first.pid}.*\n", second.stderr)

        first.kill()
        ends(first)
    with supervisor(tmp_path, port) as following:
        said = read_until(following, r"llmgw (answers|is ready)")
        assert "password" not in said
        assert children(tmp_path) == before
        following.send_signal(signal.SIGINT)
        assert ends(following) == 0
    assert processes_of(tmp_path) == []
    assert children(tmp_path) == {}


def test_a_taken_port_is_one_sentence_and_nothing_runs(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = run(other.getsockname()[1], tmp_path)
    assert done.returncode == 1
    assert re.fullmatch(r"Port \d+ on 127\.0\.0\.1 is taken by another program: .*\n", done.stderr)
    assert processes_of(tmp_path) == []


def test_a_step_that_fails_is_one_sentence_and_nothing_runs(tmp_path):
    (tmp_path / "db.sqlite3").write_text("this is no database, and it was here before")
    done = run(free_port(), tmp_path)
    assert done.returncode == 1
    assert re.fullmatch(r"Preparing the state folder failed: .*file is not a database.*\n", done.stderr)
    assert processes_of(tmp_path) == []
    assert (tmp_path / "db.sqlite3").read_text() == "this is no database, and it was here before"


def test_a_redis_that_does_not_answer_is_one_sentence_without_its_password(tmp_path):
    done = run(free_port(), tmp_path, REDIS_URL="redis://:hunter2@127.0.0.1:1/0")
    assert done.returncode == 1
    assert done.stderr == "Redis at redis://127.0.0.1:1/0 does not answer.\n"


@pytest.mark.parametrize("wrong", ["ture", "2"])
def test_a_wrong_setting_is_named(tmp_path, wrong):
    done = run(free_port(), tmp_path, LLMGW_HTTPS=wrong)
    assert done.returncode == 1
    assert "LLMGW_HTTPS" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1", "8000.5"])
def test_a_port_that_is_none_is_refused(tmp_path, port):
    done = subprocess.run(
        [sys.executable, "-m", "llmgw_site.supervisor", f"--port={port}"],
        cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == f"Argument --port: {port} is no port: write a whole number from 1 to 65535.\n"


def test_a_python_that_does_not_suit_is_one_sentence(tmp_path):
    old = tmp_path / "python2"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 2.7.18\nexit 1\n')
    old.chmod(0o755)
    done = subprocess.run(
        ["sh", ROOT / "scripts" / "setup", "requirements.txt"],
        env=os.environ | {"PYTHON": str(old)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == f"llmgw needs Python 3.11 to 3.14, and PYTHON={old} is not one: Python 2.7.18\n"
