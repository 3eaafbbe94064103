"""Engine processes: start in a session of their own, recognise after a restart, signal, bury.

A pid alone proves nothing, since the kernel gives it away again: before every signal the process's birth is compared.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

AMD = "amd:"
"""What ids of AMD devices begin with (`capacity.node.hardware.rocm.device_id`)."""
TOKEN_VARIABLE = "LLMGW_START"  # noqa: S105  (a variable's name, no secret)


@dataclass(frozen=True, slots=True)
class Alive:
    """The process runs."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The process ended; `exit_code` as the shell of Popen has it (negative: the signal), None where it is not known."""

    exit_code: int | None


def spawn(arguments: Sequence[str], *, directory: str, environment: Mapping[str, str], output: Path) -> tuple[int, str]:
    """Start a process in a new session with its output appended to a file: (pid, birth). OSError where it cannot start."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with os.fdopen(os.open(output, flags, 0o600), "ab") as file:
        process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            cwd=directory, env=dict(environment), start_new_session=True,
        )  # fmt: skip
    # This module buries its children itself (`look`), since a group must be ended before its leader's pid is free.
    process.returncode = 0
    return process.pid, birth_of(process.pid) or ""


def environment_of(token: str, declared: Mapping[str, str], devices: Sequence[str]) -> dict[str, str]:
    """The few variables an engine gets. The control plane's own (addresses, passwords) are not among them."""
    passed = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    return passed | dict(declared) | visible(devices) | {TOKEN_VARIABLE: token}


def visible(devices: Sequence[str]) -> dict[str, str]:
    """What shows an engine its devices and no others.

    ROCm takes CUDA_VISIBLE_DEVICES for its own too, and would see nothing of an empty one: with AMD devices it is left out."""
    amd = [device.removeprefix(AMD) for device in devices if device.startswith(AMD)]
    return {"ROCR_VISIBLE_DEVICES": ",".join(amd)} if amd else {"CUDA_VISIBLE_DEVICES": ",".join(devices)}


def birth_of(pid: int) -> str | None:
    """What tells this process from any other that has had or will have its pid; None where there is none.

    On Linux the boot's id and the kernel's start tick (proc(5), stat field 22), which no change of the clock moves.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}:{fields[19]}"
    except (FileNotFoundError, ProcessLookupError):
        pass
    except (OSError, IndexError):
        return None
    try:
        return None if Path("/proc/self").exists() else f"{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
        return None


def look(pid: int, birth: str) -> Alive | Ended:
    """Whether our process runs. One of our children that ended is buried here, its whole session ended first."""
    try:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return _look_at_adopted(pid, birth)
    if ended is None:
        return Alive()
    # While the zombie holds the pid, the group of that number can only be ours.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return Ended(os.waitstatus_to_exitcode(status))


def _look_at_adopted(pid: int, birth: str) -> Alive | Ended:
    try:
        if birth_of(pid) == birth and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            return Alive()
    except psutil.Error:
        pass
    return Ended(None)


def end(pid: int, birth: str, *, force: bool) -> None:
    """SIGTERM (force: SIGKILL) to the session that `spawn` began, if it is still that process."""
    if not birth or birth_of(pid) != birth:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL if force else signal.SIGTERM)


def find_by_token(token: str) -> int | None:
    """The session leader that was started with `token`, if it runs: for a crash between its start and writing its pid."""
    found = _with_token(token)
    return next((process.pid for process in found if _is_leader(process.pid)), None)


def end_leftovers(token: str) -> None:
    """SIGKILL to what an ended engine left behind (workers that still hold memory), told by the token in its environment."""
    for process in _with_token(token):
        with contextlib.suppress(psutil.Error):
            process.kill()  # psutil compares the start time first


def sessions_of(pids: Collection[int]) -> dict[int, int]:
    """pid → the session it belongs to, for those that exist here."""
    sessions = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            sessions[pid] = os.getsid(pid)
    return sessions


def free_port(host: str, ports: range, taken: Collection[int]) -> int | None:
    """The lowest port of the range that no replica has and that can be bound now."""
    return next((port for port in ports if port not in taken and _can_bind(host, port)), None)


def _can_bind(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _with_token(token: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if token and _token(process) == token]


def _token(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(TOKEN_VARIABLE)
    except (psutil.Error, OSError):
        return None


def _is_leader(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except OSError:
        return False
