"""What `manage.py inventory` prints of a reading of hardware."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..node.hardware import Device, Host, Reading

FORMAT = "llmgw.inventory/1"


def document(reading: Reading) -> dict[str, Any]:
    """The reading as JSON: memory in MiB, null where it is unknown."""
    return {
        "format": FORMAT,
        "source": reading.source,
        "hosts": [_host(host) for host in reading.hosts],
        "warnings": list(reading.warnings),
    }


def _host(host: Host) -> dict[str, Any]:
    return {
        "name": host.name or None,
        "units": dict(host.units),
        "devices": [_device(device) for device in host.devices],
        "shown": dict(host.shown),
        "unknown_products": list(host.unknown_products),
    }


def _device(device: Device) -> dict[str, Any]:
    return {
        "id": device.id,
        "product": device.product,
        "class": device.resource,
        "units": device.units,
        "memory_mib": device.memory_mib,
    }


def lines(reading: Reading) -> Iterator[str]:
    """The same for people."""
    many = len(reading.hosts) > 1
    yield f"{reading.source}: {len(reading.hosts)} hosts" if many else reading.source
    for host in reading.hosts:
        yield from _host_lines(host)
    if many:
        yield f"all hosts: {in_words(total(reading))}"
    for warning in reading.warnings:
        yield f"! {warning}"


def _host_lines(host: Host) -> Iterator[str]:
    yield f"{host.name or 'this host'}: {in_words(host.units)}"
    if host.shown:
        yield "  " + ", ".join(f"{key} {value}" for key, value in host.shown.items())
    for device in host.devices:
        memory = "memory unknown" if device.memory_mib is None else f"{device.memory_mib} MiB"
        taken = "" if device.units else ", offers nothing"
        yield f"  {device.id}  {device.product or 'without a name'}  {device.resource}  {memory}{taken}"
    for product in host.unknown_products:
        yield f"  ! {product} is not in the table of products; its class is made of its name."


def total(reading: Reading) -> dict[str, int]:
    """Class → units of all hosts together."""
    found: dict[str, int] = {}
    for host in reading.hosts:
        for name, units in host.units.items():
            found[name] = found.get(name, 0) + units
    return found


def in_words(units: Mapping[str, int]) -> str:
    """ "2 gpu/t4, 1 sim"; "no units" for none."""
    return ", ".join(f"{count} {name}" for name, count in sorted(units.items())) or "no units"
