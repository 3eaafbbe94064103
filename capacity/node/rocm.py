"""AMD devices through `rocm-smi`, where it is on the PATH. It takes up to seconds, so it is asked beside the looks."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from capacity.node.hardware.rocm import holders, ids_of, read
from capacity.node.nvml import Gpu

ASK_SECONDS = 5.0
EACH_SECONDS = 15.0
_DEVICES = ("--showproductname", "--showuniqueid", "--showid", "--showmeminfo", "vram", "--json")
_HOLDERS = ("--showpidgpus",)

Ask = Callable[[Sequence[str]], str]


class RocmFailed(RuntimeError):
    """rocm-smi is there and does not say what there is; the text is a sentence without a full stop."""


class RocmRefused(RocmFailed):
    """It ended with a fault, as versions do that do not know an option."""


def rocm_smi(arguments: Sequence[str]) -> str:
    """What `rocm-smi` prints, "" on a host without it; RocmFailed where it fails or takes longer than 5 s."""
    program = shutil.which("rocm-smi")
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=ASK_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise RocmFailed(f"rocm-smi gave no answer within {ASK_SECONDS:.0f} s") from error
    except OSError as error:
        raise RocmFailed(f"rocm-smi cannot be started: {error.strerror}") from error
    if done.returncode:
        raise RocmRefused(f"rocm-smi ended with status {done.returncode}")
    return done.stdout.decode(errors="replace")


def read_amd(ask: Ask = rocm_smi) -> list[Gpu]:
    """All AMD devices by number with the processes that use them; none on a host without rocm-smi."""
    document = _document(_asked(ask))
    if not document:
        return []
    numbers = {own_id: number for number, own_id in ids_of(document).items()}
    if not numbers:
        return []
    devices = read(document).hosts[0].devices
    pids = holders(ask(_HOLDERS))
    return [
        Gpu(
            uuid=device.id,
            index=numbers[device.id],
            product=device.product,
            resource=device.resource,
            pids=pids.get(numbers[device.id], ()),
            memory_mib=device.memory_mib,
        )
        for device in devices
    ]


def _asked(ask: Ask) -> str:
    """Versions from before there were partitions do not know that option, and there a card is a device."""
    try:
        return ask((*_DEVICES, "--showcomputepartition"))
    except RocmRefused:
        return ask(_DEVICES)


def _document(text: str) -> dict[str, Any]:
    """The JSON behind whatever warnings stand before it; empty where nothing was said."""
    if not text.strip():
        return {}
    try:
        document = json.loads(text[text.index("{") :])
    except (ValueError, RecursionError) as error:
        raise RocmFailed("rocm-smi answers with something else than its JSON") from error
    return document if isinstance(document, dict) else {}


class RocmSmi:
    """What was last seen. The first call asks and waits; later ones let a thread ask again and answer at once."""

    def __init__(self, ask: Callable[[], Sequence[Gpu]] = read_amd, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._asked_at: float | None = None
        self._asking: threading.Thread | None = None
        self._found: Sequence[Gpu] = ()
        self._failure = ""

    def __call__(self) -> Sequence[Gpu]:
        """Devices, or RocmFailed as long as the last question failed."""
        first = self._asked_at is None
        if first or self._is_due():
            self._asked_at = self._clock()
            self._asking = threading.Thread(target=self._look, name="rocm-smi", daemon=True)
            self._asking.start()
            if first:
                self._asking.join()
        if self._failure:
            raise RocmFailed(self._failure)
        return self._found

    def _is_due(self) -> bool:
        is_asking = self._asking is not None and self._asking.is_alive()
        return not is_asking and self._clock() - (self._asked_at or 0.0) >= EACH_SECONDS

    def _look(self) -> None:
        try:
            self._found, self._failure = self._ask(), ""
        except RocmFailed as error:
            self._failure = str(error)
