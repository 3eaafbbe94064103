"""The JSON shapes that cross Redis: an order to a host, a report from it.

Reading is strict: a document that is not exactly of the shape raises ValueError with one sentence, so that a broken row
is skipped as a whole and never half believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from capacity.ports import DeviceReport, NodeReport, Op, Order, ReplicaReport, ReportedState

REPORTS_KEY = "llmgw:reports:{pool}"
REPORTING_KEY = "llmgw:reporting"
"""A hash: pool → when a host reported for it last, whether or not there is such a pool."""
HEARD_KEY = "llmgw:heard:{pool}"
"""There while passes of the pool are asked for."""
LOG_KEY = "llmgw:log:{replica}"
TASK_NAME = "capacity.node_tasks.apply_order"

_MAX_NAME = 500
_MAX_REPLICA_NAME = 250
_MAX_WHOLE = 10**12


def queue_of(node: str) -> str:
    """The name of the queue that the worker of `node` reads."""
    return f"node.{node}"


def order_to_json(order: Order) -> dict[str, Any]:
    """Order → a JSON object with the same names."""
    return {
        "op": order.op,
        "pool": order.pool,
        "generation": order.generation,
        "replica": order.replica,
        "model": order.model,
        "profile": order.profile,
        "nodes": list(order.nodes),
        "resource": order.resource,
        "units": order.units,
        "template": order.template,
        "parameters": dict(order.parameters),
        "fingerprint": order.fingerprint,
        "start_timeout_seconds": order.start_timeout_seconds,
        "drain_timeout_seconds": order.drain_timeout_seconds,
        "installation": order.installation,
        "taken_over_at_generation": order.taken_over_at_generation,
    }


def order_from_json(document: object) -> Order:
    """A JSON object → Order; ValueError names the field that is wrong."""
    row = _object(document, "the order")
    op = _text(row, "op")
    if op not in get_args(Op):
        raise ValueError(f"op {op!r} is not one of {', '.join(get_args(Op))}")
    return Order(
        op=op,  # type: ignore[arg-type]
        pool=_text(row, "pool"),
        generation=_whole(row, "generation"),
        replica=_text(row, "replica"),
        model=_text(row, "model"),
        profile=_text(row, "profile"),
        nodes=_texts(row, "nodes"),
        resource=_text(row, "resource"),
        units=_whole(row, "units"),
        template=_text(row, "template", ""),
        parameters=_text_map(row, "parameters"),
        fingerprint=_text(row, "fingerprint", ""),
        start_timeout_seconds=_whole(row, "start_timeout_seconds"),
        drain_timeout_seconds=_whole(row, "drain_timeout_seconds"),
        installation=_text(row, "installation", ""),
        taken_over_at_generation=_whole({"taken_over_at_generation": 0, **row}, "taken_over_at_generation"),
    )


def report_to_json(report: NodeReport) -> dict[str, Any]:
    """NodeReport → a JSON object; times as ISO 8601 in UTC."""
    return {
        "node": report.node,
        "pool": report.pool,
        "at": time_to_json(report.at),
        "resources": dict(report.resources),
        "foreign": dict(report.foreign),
        "replicas": [_replica_to_json(replica) for replica in report.replicas],
        "labels": dict(report.labels),
        "generation": report.generation,
        "unknown_products": list(report.unknown_products),
        "installation": report.installation,
        "foreign_devices": dict(report.foreign_devices),
        "templates": {name: dict(parameters) for name, parameters in report.templates.items()},
        "shown": dict(report.shown),
        "devices": [_device_to_json(device) for device in report.devices],
    }


def report_from_json(document: object) -> NodeReport:
    """A JSON object → NodeReport; ValueError names the field that is wrong."""
    row = _object(document, "the report")
    replicas = row.get("replicas")
    if not isinstance(replicas, list):
        raise ValueError("replicas is not a list")
    return NodeReport(
        node=_text(row, "node"),
        pool=_text(row, "pool"),
        at=time_from_json(row.get("at"), "at"),
        resources=_whole_map(row, "resources"),
        foreign=_whole_map(row, "foreign"),
        replicas=tuple(_replica_from_json(replica) for replica in replicas),
        labels=_text_map(row, "labels"),
        generation=_whole(row, "generation"),
        unknown_products=_texts(row, "unknown_products"),
        installation=_text(row, "installation", ""),
        foreign_devices=_text_map(row, "foreign_devices") if "foreign_devices" in row else {},  # older workers say neither
        templates=_templates(row.get("templates", {})),
        shown=_text_map(row, "shown") if "shown" in row else {},
        devices=_devices(row.get("devices", [])),
    )


def _device_to_json(device: DeviceReport) -> dict[str, Any]:
    return {"id": device.id, "resource": device.resource, "product": device.product, "memory_mib": device.memory_mib}


def _devices(rows: object) -> tuple[DeviceReport, ...]:
    if not isinstance(rows, list):
        raise ValueError("devices is not a list")
    return tuple(_device_from_json(row) for row in rows)


def _device_from_json(document: object) -> DeviceReport:
    row = _object(document, "a device")
    return DeviceReport(
        id=_text(row, "id"),
        resource=_text(row, "resource"),
        product=_text(row, "product", ""),
        memory_mib=None if row.get("memory_mib") is None else _whole(row, "memory_mib"),
    )


def _replica_to_json(replica: ReplicaReport) -> dict[str, Any]:
    return {
        "name": replica.name,
        "model": replica.model,
        "profile": replica.profile,
        "nodes": list(replica.nodes),
        "resource": replica.resource,
        "units": replica.units,
        "state": replica.state,
        "since": time_to_json(replica.since),
        "url": replica.url,
        "generation": replica.generation,
        "devices": list(replica.devices),
        "fingerprint": replica.fingerprint,
        "was_ready": replica.was_ready,
        "exit_code": replica.exit_code,
        "message": replica.message,
    }


def _replica_from_json(document: object) -> ReplicaReport:
    row = _object(document, "a replica")
    state = _text(row, "state")
    if state not in get_args(ReportedState):
        raise ValueError(f"state {state!r} is not one of {', '.join(get_args(ReportedState))}")
    if type(row.get("was_ready")) is not bool:
        raise ValueError("was_ready is not true or false")
    return ReplicaReport(
        name=_text(row, "name", limit=_MAX_REPLICA_NAME),
        model=_text(row, "model"),
        profile=_text(row, "profile"),
        nodes=_texts(row, "nodes"),
        resource=_text(row, "resource"),
        units=_whole(row, "units"),
        state=state,  # type: ignore[arg-type]
        since=time_from_json(row.get("since"), "since"),
        url=None if row.get("url") is None else _text(row, "url", limit=2_000),
        generation=_whole(row, "generation"),
        devices=_texts(row, "devices"),
        fingerprint=_text(row, "fingerprint", "", limit=10_000),
        was_ready=row["was_ready"],
        exit_code=None if row.get("exit_code") is None else _whole(row, "exit_code", lowest=-_MAX_WHOLE),
        message=_text(row, "message", "", limit=10_000),
    )


def time_to_json(at: datetime) -> str:
    """An aware instant → ISO 8601 in UTC with microseconds."""
    return at.astimezone(UTC).isoformat()


def time_from_json(value: object, field: str) -> datetime:
    """ISO 8601 with an offset → an aware UTC instant, else ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"{field} is not a time")
    try:
        at = datetime.fromisoformat(value)
    except ValueError as error:
        raise ValueError(f"{field} is not a time") from error
    if at.tzinfo is None:
        raise ValueError(f"{field} has no time zone")
    try:
        return at.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{field} is no time of ours") from error


def _object(document: object, what: str) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise ValueError(f"{what} is not an object")
    return document


def _text(row: Mapping[str, Any], field: str, default: str | None = None, limit: int = _MAX_NAME) -> str:
    value = row.get(field, default)
    if not _is_text(value) or len(value) > limit:
        raise ValueError(f"{field} is not a text of at most {limit} characters")
    return str(value)


def _is_text(value: object) -> bool:
    """Text that a database can store: no NUL, no half of a character."""
    if not isinstance(value, str) or "\0" in value:
        return False
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def _whole(row: Mapping[str, Any], field: str, lowest: int = 0) -> int:
    value = row.get(field)
    if type(value) is not int or not lowest <= value <= _MAX_WHOLE:
        raise ValueError(f"{field} is not a whole number from {lowest} to {_MAX_WHOLE}")
    return value


def _texts(row: Mapping[str, Any], field: str) -> tuple[str, ...]:
    values = row.get(field)
    if not isinstance(values, list) or not all(map(_is_text, values)):
        raise ValueError(f"{field} is not a list of texts")
    return tuple(values)


def _text_map(row: Mapping[str, Any], field: str) -> dict[str, str]:
    values = row.get(field)
    if not isinstance(values, dict) or not all(map(_is_text, [*values, *values.values()])):
        raise ValueError(f"{field} is not an object of texts")
    return dict(values)


def _templates(document: object) -> dict[str, dict[str, bool]]:
    rows = _object(document, "templates")
    for name, parameters in rows.items():
        given = [name, *_object(parameters, "a template's parameters")]
        if not all(map(_is_text, given)) or not all(type(needed) is bool for needed in parameters.values()):
            raise ValueError("templates are not names with parameters that are needed or not")
    return {name: dict(parameters) for name, parameters in rows.items()}


def _whole_map(row: Mapping[str, Any], field: str) -> dict[str, int]:
    values = row.get(field)
    if not isinstance(values, dict) or not all(map(_is_text, values)):
        raise ValueError(f"{field} is not an object of whole numbers")
    return {key: _whole(values, key) for key in values}
