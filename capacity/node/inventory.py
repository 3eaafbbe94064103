"""What a host offers: cores, NVIDIA devices, and classes that its administrator typed in."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import psutil

from capacity.domain.products import resource_of, slice_resource_of
from capacity.node.nvml import Gpu, NvmlFailed, list_gpus
from capacity.node.processes import sessions_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One whole device or slice. `foreign`: a process that is not ours holds memory on it, so it is not offered."""

    id: str
    resource: str
    foreign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """`offered` and `foreign`: class → whole units. `devices` in the order of their indexes."""

    offered: Mapping[str, int]
    foreign: Mapping[str, int] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()
    unknown_products: tuple[str, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)

    @property
    def foreign_devices(self) -> dict[str, str]:
        """Id → class of the devices that are not offered."""
        return {device.id: device.resource for device in self.devices if device.foreign}


class NoRoom(RuntimeError):
    """The class has not enough free units on this host; the text is a sentence."""


class Hardware:
    """Takes stock of this host. `typed` (class → units) adds classes and overrides counts of those without devices."""

    def __init__(self, *, typed: Mapping[str, int], gpus: Callable[[], Sequence[Gpu]] = list_gpus) -> None:
        self._typed = dict(typed)
        self._gpus = gpus
        self._failure = ""

    def take_stock(self, ours: Collection[int], assigned: Collection[str]) -> Inventory:
        """`ours`: sessions of our engines; `assigned`: devices given to them, which are never foreign."""
        gpus = self._seen()
        devices = tuple(_device(gpu, ours, assigned) for gpu in gpus)
        offered = Counter(device.resource for device in devices if not device.foreign)
        cores = os.cpu_count() or 1
        return Inventory(
            offered={name: units for name, units in ({"cpu": cores} | self._typed | offered).items() if units},
            foreign=dict(Counter(device.resource for device in devices if device.foreign)),
            devices=devices,
            unknown_products=tuple(sorted({gpu.product for gpu in gpus if not resource_of(gpu.product)[1]})),
            shown={"cores": str(cores), "memory_gib": str(psutil.virtual_memory().total >> 30)},
        )

    def _seen(self) -> Sequence[Gpu]:
        try:
            gpus = self._gpus()
        except NvmlFailed as error:
            if str(error) != self._failure:  # said once, not at every look
                log.warning("%s. This host offers no GPU.", error)
            self._failure = str(error)
            return []
        self._failure = ""
        return sorted(gpus, key=lambda gpu: gpu.index)


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
    return Device(id=gpu.uuid, resource=resource, foreign=foreign)
