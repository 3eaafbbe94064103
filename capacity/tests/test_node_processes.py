"""Engine processes: recognised beyond doubt, ended as a whole, and told nothing that is not theirs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from capacity.node import processes
from capacity.node.processes import Alive, Ended

SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]


def wait_until(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def spawn(folder: Path, arguments: list[str], token: str = "t") -> tuple[int, str]:
    environment = processes.environment_of(token, {}, ())
    return processes.spawn(arguments, directory="/", environment=environment, output=folder / "log")


def ended(pid: int, birth: str) -> Ended:
    found: list[Ended] = []

    def look() -> bool:
        life = processes.look(pid, birth)
        found.extend([life] if isinstance(life, Ended) else [])
        return bool(found)

    wait_until(look)
    return found[0]


def test_an_engine_runs_in_a_session_of_its_own(tmp_path: Path) -> None:
    pid, birth = spawn(tmp_path, SLEEPER)
    assert processes.look(pid, birth) == Alive()
    assert os.getsid(pid) == pid
    processes.end(pid, birth, force=False)
    assert ended(pid, birth) == Ended(-signal.SIGTERM)


def test_exit_codes_are_seen_and_no_zombie_stays(tmp_path: Path) -> None:
    pid, birth = spawn(tmp_path, [sys.executable, "-c", "raise SystemExit(7)"])
    assert ended(pid, birth) == Ended(7)
    assert not Path(f"/proc/{pid}").exists()


def test_a_process_with_another_birth_is_neither_ours_nor_signalled(tmp_path: Path) -> None:
    stranger = subprocess.Popen(SLEEPER, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        processes.end(stranger.pid, "another boot:1", force=True)
        processes.end(stranger.pid, "", force=True)
        assert stranger.poll() is None
        assert processes._look_at_adopted(stranger.pid, "another boot:1") == Ended(None)
    finally:
        stranger.kill()
        stranger.wait()


def test_an_engine_started_by_a_worker_that_is_gone_is_recognised_and_can_be_ended(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from capacity.node import processes;"
        "print(*processes.spawn([sys.executable, '-c', 'import time; time.sleep(600)'], directory='/',"
        f" environment=processes.environment_of('orphan', {{}}, ()), output=Path({str(tmp_path / 'log')!r})))"
    )
    root = Path(__file__).resolve().parents[2]
    answer = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
    pid, birth = int(answer.split()[0]), answer.split()[1]
    assert processes.look(pid, birth) == Alive()
    processes.end(pid, birth, force=True)
    assert ended(pid, birth) == Ended(None)


def test_what_a_dead_engine_left_in_its_group_is_ended_with_it(tmp_path: Path) -> None:
    child = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); print(p.pid)"
    pid, birth = spawn(tmp_path, [sys.executable, "-c", child])
    ended(pid, birth)
    worker = int((tmp_path / "log").read_text())
    wait_until(lambda: not _runs(worker))


def test_what_left_even_the_session_is_found_by_its_token(tmp_path: Path) -> None:
    token = uuid.uuid4().hex
    child = (
        "import subprocess, sys;"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True); print(p.pid)"
    )
    pid, birth = spawn(tmp_path, [sys.executable, "-c", child], token)
    ended(pid, birth)
    worker = int((tmp_path / "log").read_text())
    assert _runs(worker)
    processes.end_leftovers(token)
    wait_until(lambda: not _runs(worker))


def test_a_start_is_found_by_its_token_alone(tmp_path: Path) -> None:
    token = uuid.uuid4().hex
    pid, birth = spawn(tmp_path, SLEEPER, token)
    wait_until(lambda: processes.find_by_token(token) == pid)
    assert processes.find_by_token("another") is None
    assert processes.find_by_token("") is None
    processes.end(pid, birth, force=True)
    ended(pid, birth)


def test_no_secret_of_the_control_plane_reaches_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REDIS_URL", "DATABASE_URL", "LLMGW_SECRET_KEY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "hidden-value")
    environment = processes.environment_of("t", {"VLLM_USE_V1": "1"}, ("GPU-a", "GPU-b"))
    output = tmp_path / "log"
    pid, birth = processes.spawn(
        [sys.executable, "-c", "import os; print(sorted(os.environ.items()))"],
        directory="/", environment=environment, output=output,
    )  # fmt: skip
    ended(pid, birth)
    seen = output.read_text()
    assert "hidden-value" not in seen
    assert "('CUDA_VISIBLE_DEVICES', 'GPU-a,GPU-b')" in seen
    assert "('VLLM_USE_V1', '1')" in seen
    assert "('PATH'," in seen


def test_an_engine_without_devices_is_shown_none(tmp_path: Path) -> None:
    assert processes.environment_of("t", {}, ())["CUDA_VISIBLE_DEVICES"] == ""


def test_a_port_that_is_taken_by_a_replica_or_by_anybody_else_is_passed_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        assert processes.free_port("127.0.0.1", range(port, port + 1), set()) is None
    assert processes.free_port("127.0.0.1", range(port, port + 1), set()) == port
    assert processes.free_port("127.0.0.1", range(port, port + 1), {port}) is None


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
