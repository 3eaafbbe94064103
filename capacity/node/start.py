"""From an order to what will be run: everything that can be refused is refused here, before anything is started."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from capacity.node.inventory import Inventory, NoRoom, assign
from capacity.node.parameters import Refused, shown
from capacity.node.processes import AMD, free_port
from capacity.node.record import Record
from capacity.node.templates import Command, Template, rendered
from capacity.ports import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where engines of this host listen."""

    address: str
    ports: range


def prepared(
    order: Order,
    *,
    templates: Mapping[str, Template],
    inventory: Inventory,
    holding: Sequence[Record],
    place: Place,
    now: datetime,
) -> tuple[Record, Command]:
    """The record of intent and the command; Refused or NoRoom with one sentence, in which case nothing changed.

    `holding`: the replicas that hold hardware and ports now.
    """
    template = templates.get(order.template)
    if template is None:
        raise Refused(f"This host has no runtime template {shown(order.template)}.")
    if order.units < 1:
        raise Refused(f"{order.units} units of {order.resource} are no size for a replica.")
    devices = _devices(order, inventory, holding)
    port = free_port(place.address, place.ports, {record.port for record in holding})
    if port is None:
        raise NoRoom(f"No port from {place.ports.start} to {place.ports.stop - 1} is free on this host.")
    shown_devices = ",".join(device.removeprefix(AMD) for device in devices)
    command = rendered(template, model=order.model, values=order.parameters, host=place.address, port=port, devices=shown_devices)
    intent = record_of(
        order,
        state="starting",
        since=now,
        host=place.address,
        port=port,
        health=command.health,
        devices=devices,
        token=uuid.uuid4().hex,
    )
    return intent, command


def record_of(order: Order, **more: object) -> Record:
    """A record with what the order says of the replica, and the rest as given."""
    return Record(
        name=order.replica,
        model=order.model,
        profile=order.profile,
        nodes=order.nodes,
        resource=order.resource,
        units=order.units,
        template=order.template,
        parameters=dict(order.parameters),
        fingerprint=order.fingerprint,
        generation=order.generation,
        installation=order.installation,
        drain_timeout_seconds=order.drain_timeout_seconds,
        **more,  # type: ignore[arg-type]
    )


def _devices(order: Order, inventory: Inventory, holding: Iterable[Record]) -> tuple[str, ...]:
    held: Counter[str] = Counter()
    assigned: set[str] = set()
    for record in holding:
        held[record.resource] += record.units
        assigned.update(record.devices)
    return assign(inventory, order.resource, order.units, held, assigned)
