"""NVIDIA devices through nvidia-ml-py, behind one function so that everything else works without it."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One device or one MIG slice. `slice_name` is empty for a whole device; `pids` are those that hold memory on it.

    `resource` is its class where whoever listed it knows more than the product's name says. Memory None is unknown."""

    uuid: str
    index: int
    product: str
    slice_name: str = ""
    pids: tuple[int, ...] = ()
    resource: str = ""
    memory_mib: int | None = None


class NvmlFailed(RuntimeError):
    """The library, the driver or a device could not be asked; the text says which."""


def list_gpus() -> list[Gpu]:
    """All devices by index, a device in MIG mode as its slices; empty on a host without NVIDIA's library."""
    try:
        import pynvml  # type: ignore[import-untyped]
    except ImportError:
        return []
    return read_gpus(pynvml)


def read_gpus(nvml: ModuleType | Any) -> list[Gpu]:
    """`list_gpus` over a given binding. A missing library is no GPU; any other error is NvmlFailed."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        if getattr(error, "value", None) == nvml.NVML_ERROR_LIBRARY_NOT_FOUND:
            return []
        raise NvmlFailed(f"NVML does not start: {error}") from error
    try:
        return [gpu for index in range(nvml.nvmlDeviceGetCount()) for gpu in _device(nvml, index)]
    except nvml.NVMLError as error:
        raise NvmlFailed(f"NVML cannot list the devices: {error}") from error
    finally:
        nvml.nvmlShutdown()


def _device(nvml: Any, index: int) -> list[Gpu]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    product = _text(nvml.nvmlDeviceGetName(handle))
    if _in_mig_mode(nvml, handle):
        return [_slice(nvml, index, product, part) for part in _slices(nvml, handle)]
    uuid, memory = _text(nvml.nvmlDeviceGetUUID(handle)), _memory(nvml, handle)
    return [Gpu(uuid=uuid, index=index, product=product, pids=_pids(nvml, handle), memory_mib=memory)]


def _in_mig_mode(nvml: Any, handle: Any) -> bool:
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:  # a product without MIG says "not supported"
        return False
    return bool(current == nvml.NVML_DEVICE_MIG_ENABLE)


def _slices(nvml: Any, handle: Any) -> list[Any]:
    found = []
    for position in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            found.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, position))
        except nvml.NVMLError as error:
            if getattr(error, "value", None) != nvml.NVML_ERROR_NOT_FOUND:  # an empty position
                raise
    return found


def _slice(nvml: Any, index: int, product: str, part: Any) -> Gpu:
    return Gpu(
        uuid=_text(nvml.nvmlDeviceGetUUID(part)),
        index=index,
        product=product,
        slice_name=_text(nvml.nvmlDeviceGetName(part)),
        pids=_pids(nvml, part),
        memory_mib=_memory(nvml, part),
    )


def _memory(nvml: Any, handle: Any) -> int | None:
    """None for devices that share the host's memory, and where the driver does not say."""
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).total) >> 20 or None
    except nvml.NVMLError:
        return None


def _pids(nvml: Any, handle: Any) -> tuple[int, ...]:
    running = [*nvml.nvmlDeviceGetComputeRunningProcesses(handle), *_graphics(nvml, handle)]
    return tuple(sorted({process.pid for process in running}))


def _graphics(nvml: Any, handle: Any) -> list[Any]:
    try:
        return list(nvml.nvmlDeviceGetGraphicsRunningProcesses(handle))
    except nvml.NVMLError:  # slices and data-centre products have none
        return []


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
