"""What a host offers: cores, NVIDIA and AMD devices, and classes that its administrator typed in."""

from __future__ import annotations

import hashlib
import logging
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from capacity.domain.products import resource_of, slice_resource_of
from capacity.node.nvml import Gpu, NvmlFailed, list_gpus
from capacity.node.processes import sessions_of
from capacity.node.rocm import RocmFailed, RocmSmi
from capacity.ports import DeviceReport

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One whole device or slice. `foreign`: a process that is not ours holds memory on it, so it is not offered."""

    id: str
    resource: str
    foreign: bool = False
    product: str = ""
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """`offered` and `foreign`: class → whole units. `devices` in the order of their indexes. `shown`: what people look at and
    no plan counts with; `labels`: what profiles may ask for beside the administrator's."""

    offered: Mapping[str, int]
    foreign: Mapping[str, int] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()
    unknown_products: tuple[str, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def reported_devices(self) -> tuple[DeviceReport, ...]:
        """The devices as reports say them."""
        return tuple(
            DeviceReport(id=device.id, resource=device.resource, product=device.product, memory_mib=device.memory_mib)
            for device in self.devices
        )

    @property
    def foreign_devices(self) -> dict[str, str]:
        """Id → class of the devices that are not offered."""
        return {device.id: device.resource for device in self.devices if device.foreign}


class NoRoom(RuntimeError):
    """The class has not enough free units on this host; the text is a sentence."""


class Hardware:
    """Takes stock of this host. `typed` (class → units) adds classes and overrides counts of those without devices."""

    def __init__(
        self,
        *,
        typed: Mapping[str, int],
        gpus: Callable[[], Sequence[Gpu]] = list_gpus,
        amd: Callable[[], Sequence[Gpu]] | None = None,
    ) -> None:
        self._typed = dict(typed)
        self._sources = (gpus, amd or RocmSmi())
        self._failures = ["" for _ in self._sources]

    def take_stock(self, ours: Collection[int], assigned: Collection[str]) -> Inventory:
        """`ours`: sessions of our engines; `assigned`: devices given to them, which are never foreign."""
        gpus = [gpu for number in range(len(self._sources)) for gpu in self._seen(number)]
        devices = tuple(_device(gpu, ours, assigned) for gpu in gpus)
        offered = Counter(device.resource for device in devices if not device.foreign)
        cores = os.cpu_count() or 1
        return Inventory(
            offered={name: units for name, units in ({"cpu": cores} | self._typed | offered).items() if units},
            foreign=dict(Counter(device.resource for device in devices if device.foreign)),
            devices=devices,
            unknown_products=tuple(sorted({gpu.product for gpu in gpus if not resource_of(gpu.product)[1]})),
            shown={"cores": str(cores), "memory_gib": str(psutil.virtual_memory().total >> 30), "machine": machine()},
            labels=_product_label(gpus),
        )

    def _seen(self, number: int) -> Sequence[Gpu]:
        """The devices of one source; a failure is said once, not at every look, and hides no other source's devices."""
        try:
            gpus = self._sources[number]()
        except (NvmlFailed, RocmFailed) as error:
            if str(error) != self._failures[number]:
                log.warning("%s. This host offers none of those devices.", error)
            self._failures[number] = str(error)
            return []
        self._failures[number] = ""
        return sorted(gpus, key=lambda gpu: gpu.index)


def machine() -> str:
    """What is the same for all workers on one machine, and tells nothing else of it; "" where it cannot be told."""
    for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        try:
            return hashlib.sha256(Path(path).read_bytes().strip()).hexdigest()[:16]
        except OSError:
            continue
    return ""


def _product_label(gpus: Sequence[Gpu]) -> dict[str, str]:
    """The full name, so that a profile can ask for one form of a class; of several products all of them."""
    products = sorted({gpu.product for gpu in gpus if gpu.product})
    return {"gpu.product": ", ".join(products)[:200]} if products else {}


def assign(
    inventory: Inventory, resource: str, units: int, held: Mapping[str, int], assigned: Collection[str]
) -> tuple[str, ...]:
    """Ids of the devices for a replica, lowest index first; none for a class without devices. NoRoom where too few are free.

    `held`: class → units of all replicas that hold hardware; `assigned`: their devices.
    """
    offered = inventory.offered.get(resource, 0)
    free = offered - held.get(resource, 0)
    of_class = [device for device in inventory.devices if device.resource == resource]
    candidates = [device.id for device in of_class if not device.foreign and device.id not in assigned]
    if units > free or (of_class and units > len(candidates)):
        free = min(free, len(candidates)) if of_class else free
        raise NoRoom(f"{units} of {resource} are asked for, and {max(free, 0)} of the {offered} that this host offers are free.")
    return tuple(candidates[:units])


def _device(gpu: Gpu, ours: Collection[int], assigned: Collection[str]) -> Device:
    sessions = sessions_of(gpu.pids)
    # A pid that cannot be resolved here (another container's) is somebody else's.
    foreign = gpu.uuid not in assigned and any(sessions.get(pid) not in ours for pid in gpu.pids)
    resource = slice_resource_of(gpu.product, gpu.slice_name) if gpu.slice_name else resource_of(gpu.product)[0]
    return Device(id=gpu.uuid, resource=gpu.resource or resource, foreign=foreign, product=gpu.product, memory_mib=gpu.memory_mib)
