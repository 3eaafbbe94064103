"""Does the faults of a schedule, and undoes them."""

from __future__ import annotations

import contextlib
import heapq
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import psutil

from llmgw_site.tests.e2e.rows import POOL, SIMULATOR

from .fleet import Fleet
from .rows import HOSTS, LIMIT, MODELS
from .schedule import Fault, Schedule

PASS_WITHIN_SECONDS = 3.0
Undo = Callable[[], None]


def nothing() -> None:
    """For what mends itself, or is put back with all edits at the end."""


class Faults:
    """Over one fleet. A fault that finds nothing to hurt does nothing. `untaken`: edits that the API did not take, by kind."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.untaken: Counter[str] = Counter()

    def _acts(self) -> Mapping[str, Callable[[Fault], Undo]]:
        return {
            "kill": self._kill,
            "kill_child": self._kill_child,
            "kill_engine": self._kill_engine,
            "kill_pass": self._kill_pass,
            "pause": self._pause,
            "pause_engine": self._pause_engine,
            "pause_pass": self._pause_pass,
            "cut": self._cut,
            "clock": self._clock,
            "cordon": self._cordon,
            "load": self._load,
            "burst": self._burst,
            "edit_bounds": self._edit_model,
            "edit_mode": self._edit_model,
            "edit_limit": self._edit_limit,
            "edit_parameters": self._edit_parameters,
        }

    def run(self, schedule: Schedule) -> None:
        """All faults in their time; on return the last one is undone."""
        begin, order = time.monotonic(), count()
        due: list[tuple[float, int, Callable[[], Any], float]] = []
        for fault in schedule.faults:
            heapq.heappush(due, (fault.after, next(order), lambda fault=fault: self._acts()[fault.kind](fault), fault.seconds))
        while due:
            at, _, act, seconds = heapq.heappop(due)
            time.sleep(max(0.0, begin + at - time.monotonic()))
            undo = act()
            if undo is not None:
                heapq.heappush(due, (at + seconds, next(order), undo, 0.0))

    def put_back(self) -> list[str]:
        """Everything that was edited as it was at first; what the API has not taken."""
        done: dict[str, int | None] = {}
        for model in MODELS:
            values = {"mode": "auto", "min_replicas": model.at_least, "max_replicas": model.at_most}
            done[model.name] = self._patch("models", model.name, values)
            done[f"the profile of {model.name}"] = self._patch_profile(model.name, SIMULATOR)
        for name in HOSTS:
            done[name] = self._post(f"nodes/{name}/cordon", {"schedulable": True, "reason": "chaos"})
        done["the limit"] = self._patch("quotas", self._fleet.one("SELECT id FROM quotas_capacityquota"), {"limit": LIMIT})
        held = {model.name: {"held": 0} for model in MODELS}
        done["the load"] = self._post(f"load?pool={POOL}", {"source": "chaos", "models": held})
        return [f"{what} cannot be put back ({status or 'no answer'})" for what, status in done.items() if status != 200]

    # --- processes

    def _kill(self, fault: Fault) -> Undo:
        if fault.target not in self._fleet.running():
            return nothing
        self._fleet.kill(fault.target)
        return lambda: self._fleet.start(fault.target)

    def _kill_child(self, fault: Fault) -> Undo:
        if fault.target in self._fleet.running():
            children = psutil.Process(self._fleet.pid(fault.target)).children()
            _signal(children, fault, signal.SIGKILL)
        return nothing

    def _kill_engine(self, fault: Fault) -> Undo:
        _signal(self._fleet.engine_processes(), fault, signal.SIGKILL)
        return nothing

    def _kill_pass(self, fault: Fault) -> Undo:
        self._signal_pass(signal.SIGKILL)
        return nothing

    def _pause_pass(self, fault: Fault) -> Undo:
        stopped = self._signal_pass(signal.SIGSTOP)
        return lambda: _resume(stopped)

    def _signal_pass(self, number: signal.Signals) -> psutil.Process | None:
        """To whoever holds the lease, in the moment in which he does: a pass takes some hundredths of a second."""
        workers = [psutil.Process(self._fleet.pid(name)) for name in {"worker", "worker-2"} & self._fleet.running()]
        ours = {str(child.pid): child for worker in workers for child in worker.children()}
        deadline = time.monotonic() + PASS_WITHIN_SECONDS
        while time.monotonic() < deadline:
            holder = ours.get(self._fleet.one("SELECT holder FROM capacity_lease").rpartition(":")[2])
            if holder:
                with contextlib.suppress(psutil.Error):
                    holder.send_signal(number)
                return holder
        return None

    def _pause_engine(self, fault: Fault) -> Undo:
        stopped = _signal(self._fleet.engine_processes(), fault, signal.SIGSTOP)
        return lambda: _resume(stopped)

    def _pause(self, fault: Fault) -> Undo:
        self._fleet.signal(fault.target, signal.SIGSTOP)
        return lambda: self._fleet.signal(fault.target, signal.SIGCONT)

    # --- hosts

    def _cut(self, fault: Fault) -> Undo:
        cable = self._fleet.cables[fault.target]
        cable.cut(drop=bool(fault.value))
        return cable.mend

    def _clock(self, fault: Fault) -> Undo:
        assert isinstance(fault.value, float)
        self._fleet.set_clock(fault.target, fault.value)
        return lambda: self._fleet.set_clock(fault.target, 0)

    # --- people and gateways, whose acts fail where nobody answers

    def _cordon(self, fault: Fault) -> Undo:
        return self._taken(fault, self._post(f"nodes/{fault.target}/cordon", {"schedulable": False, "reason": "chaos"}))

    def _load(self, fault: Fault) -> Undo:
        return self._taken(fault, self._post(f"load?pool={POOL}", {"source": "chaos", "models": {fault.target: fault.value}}))

    def _burst(self, fault: Fault) -> Undo:
        self._load(fault)
        return self._fleet.burst()

    def _edit_model(self, fault: Fault) -> Undo:
        return self._taken(fault, self._patch("models", fault.target, fault.value))

    def _edit_limit(self, fault: Fault) -> Undo:
        quota = self._fleet.one("SELECT id FROM quotas_capacityquota")
        return self._taken(fault, self._patch("quotas", quota, fault.value))

    def _edit_parameters(self, fault: Fault) -> Undo:
        assert isinstance(fault.value, Mapping)
        return self._taken(fault, self._patch_profile(fault.target, {**SIMULATOR, **fault.value}))

    def _taken(self, fault: Fault, status: int | None) -> Undo:
        if status != 200:
            self.untaken[f"{fault.kind} ({status or 'no answer'})"] += 1
        return nothing

    def _patch_profile(self, model: str, parameters: Mapping[str, str]) -> int | None:
        sql = "SELECT p.id FROM capacity_profile p JOIN capacity_languagemodel m ON m.id = p.model_id WHERE m.name = ?"
        return self._patch("profiles", self._fleet.one(sql, model), {"parameters": parameters})

    def _patch(self, kind: str, name: object, values: Any) -> int | None:
        return self._fleet.call("PATCH", f"{kind}/{name}", {**values, "reason": "chaos"})

    def _post(self, path: str, body: Mapping[str, Any]) -> int | None:
        return self._fleet.call("POST", path, body)


def _signal(processes: list[psutil.Process], fault: Fault, number: signal.Signals) -> psutil.Process | None:
    """To one of them, chosen by the fault's share; None where there is none."""
    assert isinstance(fault.value, float)
    chosen = sorted(processes, key=lambda process: process.pid)
    if not chosen:
        return None
    victim = chosen[int(fault.value * len(chosen))]
    with contextlib.suppress(psutil.Error):
        victim.send_signal(number)
    return victim


def _resume(stopped: psutil.Process | None) -> None:
    with contextlib.suppress(psutil.Error, OSError):
        if stopped is not None:
            os.kill(stopped.pid, signal.SIGCONT)
