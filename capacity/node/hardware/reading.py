"""What was read of hardware: hosts with their devices, and what was odd about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from capacity.domain.products import resource_of

MOST_DEVICES = 10_000
MOST_WARNINGS = 100
_AMOUNT = re.compile(r"\s*(\d{1,15})(?:\.\d+)?\s*(B|KiB|MiB|GiB|TiB)\s*")
_MIB = {"B": 1 / 2**20, "KiB": 1 / 2**10, "MiB": 1, "GiB": 2**10, "TiB": 2**20}


class Unreadable(ValueError):
    """The text is none of the forms, or is broken; the message is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device, or one slice of it. `units` 0: it is there and cannot be given to a replica. Memory None is unknown."""

    id: str
    product: str
    resource: str
    units: int = 1
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One machine. `name` is empty where the text does not say; `units`: class → whole units that it can offer."""

    name: str = ""
    devices: tuple[Device, ...] = ()
    units: Mapping[str, int] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)
    unknown_products: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """`source` says in which form it came. Warnings are sentences."""

    source: str
    hosts: tuple[Host, ...]
    warnings: tuple[str, ...] = ()


def one_host(source: str, devices: Iterable[Device], warnings: Iterable[str] = ()) -> Reading:
    """A reading of one machine: its units are those of its devices."""
    found = tuple(devices)
    if len(found) > MOST_DEVICES:
        raise Unreadable(f"{len(found)} devices are more than a host has (at most {MOST_DEVICES}).")
    return Reading(source=source, hosts=(host_of(found),), warnings=bounded(warnings))


def bounded(warnings: Iterable[str]) -> tuple[str, ...]:
    """Each once, and no more than anybody reads."""
    found = tuple(dict.fromkeys(warnings))
    more = len(found) - MOST_WARNINGS
    return found if more <= 0 else (*found[:MOST_WARNINGS], f"And {more} more like these.")


def host_of(devices: tuple[Device, ...], name: str = "", shown: Mapping[str, str] | None = None) -> Host:
    """A host that offers what its devices come to."""
    units: Counter[str] = Counter()
    for device in devices:
        units[device.resource] += device.units
    return Host(
        name=name,
        devices=devices,
        units={resource: count for resource, count in sorted(units.items()) if count},
        shown=shown or {},
        unknown_products=unknown(device.product for device in devices),
    )


def unknown(products: Iterable[str]) -> tuple[str, ...]:
    """Those that the table of products does not have."""
    return tuple(sorted({product or "a device without a name" for product in products if not resource_of(product)[1]}))


def mebibytes(text: str | None) -> int | None:
    """ "81559 MiB" → 81559; None for "N/A", "[Not Supported]" and whatever is no amount."""
    found = _AMOUNT.fullmatch(text or "")
    return round(int(found[1]) * _MIB[found[2]]) if found else None
