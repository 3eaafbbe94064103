"""What a host offers: products, slices, foreign devices, and an NVML that fails."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from capacity.node.inventory import Device, Hardware, Inventory, NoRoom, assign
from capacity.node.nvml import Gpu, NvmlFailed, read_gpus


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        self.value = value


class FakeNvml:
    """A driver with one whole H100, one A100 in two slices, as nvidia-ml-py shows them."""

    NVMLError = NVMLError
    NVML_ERROR_LIBRARY_NOT_FOUND, NVML_ERROR_NOT_FOUND, NVML_ERROR_NOT_SUPPORTED = 12, 6, 3
    NVML_DEVICE_MIG_ENABLE = 1

    def __init__(self, fails: dict[str, int] | None = None) -> None:
        self.fails = fails or {}
        self.shutdowns = 0

    def _may_fail(self, call: str) -> None:
        if call in self.fails:
            raise NVMLError(self.fails[call])

    def nvmlInit(self) -> None:
        self._may_fail("init")

    def nvmlShutdown(self) -> None:
        self.shutdowns += 1

    def nvmlDeviceGetCount(self) -> int:
        self._may_fail("count")
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"gpu{index}"

    def nvmlDeviceGetName(self, handle: str) -> str | bytes:
        return {"gpu0": b"NVIDIA H100 80GB HBM3", "gpu1": "NVIDIA A100-SXM4-40GB"}.get(
            handle, "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
        )

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return f"UUID-{handle}"

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        if handle == "mig1":
            raise NVMLError(self.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(total=80 << 30 if handle == "gpu0" else 20 << 30)

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        if handle == "gpu0":
            raise NVMLError(self.NVML_ERROR_NOT_SUPPORTED)
        return [1, 1]

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: str) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: str, position: int) -> str:
        if position > 1:
            raise NVMLError(self.fails.get("slice", self.NVML_ERROR_NOT_FOUND))
        return f"mig{position}"

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:
        return [SimpleNamespace(pid=os.getpid()), SimpleNamespace(pid=os.getpid())] if handle == "mig1" else []

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: str) -> list[Any]:
        raise NVMLError(self.NVML_ERROR_NOT_SUPPORTED)


def test_whole_devices_and_slices_are_listed_with_who_holds_them() -> None:
    nvml = FakeNvml()
    assert read_gpus(nvml) == [
        Gpu(uuid="UUID-gpu0", index=0, product="NVIDIA H100 80GB HBM3", memory_mib=80 << 10),
        Gpu(
            uuid="UUID-mig0", index=1, product="NVIDIA A100-SXM4-40GB", slice_name="NVIDIA A100-SXM4-40GB MIG 3g.20gb",
            memory_mib=20 << 10,
        ),
        Gpu(
            uuid="UUID-mig1", index=1, product="NVIDIA A100-SXM4-40GB",
            slice_name="NVIDIA A100-SXM4-40GB MIG 3g.20gb", pids=(os.getpid(),),
        ),
    ]  # fmt: skip
    assert nvml.shutdowns == 1


def test_a_host_without_the_library_has_no_gpu() -> None:
    assert read_gpus(FakeNvml({"init": FakeNvml.NVML_ERROR_LIBRARY_NOT_FOUND})) == []


@pytest.mark.parametrize("fails", [{"init": 18}, {"count": 999}, {"slice": 15}])
def test_any_other_failure_is_said(fails: dict[str, int]) -> None:
    with pytest.raises(NvmlFailed):
        read_gpus(FakeNvml(fails))


def test_a_slice_that_a_stranger_holds_is_foreign_and_our_own_is_not() -> None:
    hardware = Hardware(typed={"cpu": 0}, gpus=lambda: read_gpus(FakeNvml()))
    seen = hardware.take_stock(ours=set(), assigned=set())
    assert (seen.offered, seen.foreign) == ({"gpu/h100": 1, "gpu/a100/mig-3g.20gb": 1}, {"gpu/a100/mig-3g.20gb": 1})
    assert hardware.take_stock(ours={os.getsid(0)}, assigned=set()).foreign == {}
    assert hardware.take_stock(ours=set(), assigned={"UUID-mig1"}).foreign == {}


def test_a_holder_that_cannot_be_seen_from_here_is_foreign() -> None:
    gpu = Gpu(uuid="u", index=0, product="NVIDIA L4", pids=(2**22 + 5,))
    assert Hardware(typed={}, gpus=lambda: [gpu]).take_stock(ours={1}, assigned=set()).foreign == {"gpu/l4": 1}


def test_cores_are_offered_unless_the_administrator_says_otherwise_and_unknown_products_are_listed() -> None:
    gpus = [Gpu(uuid="u", index=0, product="NVIDIA GeForce GTX 1080")]
    seen = Hardware(typed={"sim": 16}, gpus=lambda: gpus).take_stock(ours=set(), assigned=set())
    assert seen.offered == {"cpu": os.cpu_count(), "sim": 16, "gpu/geforce-gtx-1080": 1}
    assert seen.unknown_products == ("NVIDIA GeForce GTX 1080",)
    assert Hardware(typed={"cpu": 1}, gpus=list).take_stock(ours=set(), assigned=set()).offered == {"cpu": 1}


def test_a_whole_device_is_no_slice_and_a_slice_is_no_device() -> None:
    devices = (Device(id="a", resource="gpu/a100"), Device(id="b", resource="gpu/a100/mig-1g.5gb"))
    inventory = Inventory(offered={"gpu/a100": 1, "gpu/a100/mig-1g.5gb": 1}, devices=devices)
    assert assign(inventory, "gpu/a100/mig-1g.5gb", 1, {}, set()) == ("b",)
    with pytest.raises(NoRoom, match="2 of gpu/a100 are asked for, and 1 of the 1"):
        assign(inventory, "gpu/a100", 2, {}, set())
    with pytest.raises(NoRoom, match="0 of the 0"):
        assign(inventory, "gpu", 1, {}, set())


def test_units_that_replicas_hold_are_not_free_even_where_the_offer_shrank_below_them() -> None:
    with pytest.raises(NoRoom, match="and 0 of the 4"):
        assign(Inventory(offered={"sim": 4}), "sim", 1, {"sim": 6}, set())
