"""A child: started, restarted with back-off, adopted by pid and birth, ended."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from capacity.node import processes
from llmgw_site.supervisor.child import MAX_LOG_BYTES, Child, Record, Running, read_records, write_record

from .waiting import WAITS, until

STUBBORN = (
    sys.executable, "-c",
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()",
)  # fmt: skip
DIES = (sys.executable, "-c", "import sys; sys.exit('no such thing as bread')")


def running(folder: Path, command: tuple[str, ...], **given: object) -> Running:
    return Running(Child(name="bread", command=command, **given), folder=folder, root=folder)


def is_up(child: Running) -> bool:
    return child.log_path.exists() and "up" in child.log_path.read_text()


def test_a_child_runs_in_a_session_of_its_own_and_is_written_down(folder):
    child = running(folder, WAITS)
    child.start(0)
    (record,) = read_records(folder)
    assert os.getsid(record.pid) == record.pid
    assert record.birth == processes.birth_of(record.pid)


def test_a_child_that_is_asked_to_end_is_gone_and_forgotten(folder):
    child = running(folder, WAITS)
    child.start(0)
    until(lambda: is_up(child))
    child.terminate(1)
    until(lambda: child.gone(1))
    assert read_records(folder) == []


def test_one_that_ignores_the_request_is_killed_when_its_time_is_over_and_not_before(folder):
    child = running(folder, STUBBORN, stop_seconds=10)
    child.start(0)
    until(lambda: is_up(child))
    child.terminate(100)
    assert not child.gone(109)
    until(lambda: child.gone(110))


def test_force_kills_at_once(folder):
    child = running(folder, STUBBORN, stop_seconds=1000)
    child.start(0)
    until(lambda: is_up(child))
    child.terminate(0)
    until(lambda: child.gone(0, force=True))


def test_what_a_killed_child_leaves_of_its_session_is_killed_too(folder):
    nested = f"import signal, subprocess; print(subprocess.Popen({WAITS!r}).pid, flush=True); signal.pause()"
    child = running(folder, (sys.executable, "-c", nested))
    child.start(0)
    words = until(lambda: child.log_path.read_text().split() if is_up(child) else None)
    below = next(int(word) for word in words if word.isdigit())
    (record,) = read_records(folder)
    os.kill(record.pid, signal.SIGKILL)
    until(lambda: child.look(0))
    until(lambda: processes.birth_of(below) is None or _is_zombie(below))


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_death_is_told_with_its_exit_code_and_last_line(folder):
    child = running(folder, DIES)
    child.start(0)
    assert until(lambda: child.look(0)) == "bread ended (exit code 1): no such thing as bread"


def test_a_death_by_signal_is_told_as_that(folder):
    child = running(folder, WAITS)
    child.start(0)
    until(lambda: is_up(child))
    os.kill(read_records(folder)[0].pid, signal.SIGKILL)
    assert "signal SIGKILL" in until(lambda: child.look(0))


def test_restarts_wait_twice_as_long_each_time_up_to_half_a_minute(folder):
    child = running(folder, ("/nowhere/at/all",))
    child.start(0)
    deaths = [(0.0, 1)]
    for half_seconds in range(1, 200):
        child.look(half_seconds / 2)
        if child.failures > deaths[-1][1]:
            deaths.append((half_seconds / 2, child.failures))
    times = [at for at, _ in deaths]
    assert [later - earlier for earlier, later in pairwise(times)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_program_that_does_not_exist_counts_as_a_death_and_is_tried_again(folder):
    child = running(folder, ("/nowhere/at/all",))
    child.start(0)
    assert child.failures == 1
    child.look(0.5)
    assert child.failures == 1
    child.look(1)
    assert child.failures == 2


def test_a_minute_of_life_wipes_out_earlier_deaths(folder):
    child = running(folder, WAITS)
    child.failures = 5
    child.start(0)
    child.look(59)
    assert child.failures == 5
    child.look(60)
    assert child.failures == 0


def test_a_log_stays_within_its_bound(folder):
    child = running(folder, WAITS)
    child.log_path.write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    child.start(0)
    child.look(0)
    assert child.log_path.stat().st_size < MAX_LOG_BYTES


def test_the_recorded_process_is_adopted(folder):
    first = running(folder, WAITS)
    first.start(0)
    (record,) = read_records(folder)
    second = running(folder, WAITS)
    assert second.adopt(record, 5)
    assert second.look(5) is None
    assert read_records(folder) == [record]


def test_another_process_that_got_the_pid_is_neither_adopted_nor_touched(folder):
    stranger = running(folder, WAITS)
    stranger.start(0)
    (record,) = read_records(folder)
    claimed = replace(record, birth="another boot:1")
    assert not running(folder, WAITS).adopt(claimed, 0)
    assert isinstance(processes.look(record.pid, record.birth), processes.Alive)


def test_a_broken_record_tells_nothing(folder):
    (folder / "run" / "web.json").write_text('{"pid": "')
    (folder / "run" / "beat.json").write_text('{"pid": 1}')
    assert read_records(folder) == []
    assert list((folder / "run").iterdir()) == []


def test_a_record_is_read_as_it_was_written(folder):
    record = Record(name="gone", pid=2**22 + 1, birth="b", fingerprint="f")
    write_record(folder, record)
    assert read_records(folder) == [record]


def test_a_fingerprint_changes_with_command_and_with_what_the_child_depends_on():
    child = Child(name="web", command=("a", "b"))
    others = [replace(child, command=("a b",)), replace(child, depends_on="x"), replace(child, environment={"A": "1"})]
    assert len({child.fingerprint, *(other.fingerprint for other in others)}) == 4
