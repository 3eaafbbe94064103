"""What an llm-d report says of the deployment: engines, hardware, parallelism, replicas. Arguments and variables are not read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from capacity.bench.formats import values

_PARALLEL: Final = {"tensor_parallel": "tp", "pipeline_parallel": "pp", "data_parallel": "dp", "expert_parallel": "ep"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """`variant` tells a deployment with prefill and decode apart from one without."""

    model: str | None
    engine: str | None
    engine_version: str | None
    hardware: str | None
    variant: str | None
    hints: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One kind of engine in it: `replicas` of them, each with `gpus`."""

    role: str | None
    replicas: int
    card: str | None
    gpus: int | None
    parallel: Mapping[str, int]


def of(scenario: Mapping[str, Any]) -> Stack:
    engines = _engines(scenario)
    parts = [_part(engine) for engine in engines] or _hosts(scenario)
    cards = sorted({part.card for part in parts if part.card})
    return Stack(
        model=_first(values.at(scenario, "model", "name"), *(values.at(engine, "model", "name") for engine in engines)),
        engine=_first(values.at(scenario, "platform", "engine", 0, "name"), *(values.at(engine, "tool") for engine in engines)),
        engine_version=_first(
            values.at(scenario, "platform", "engine", 0, "version"), *(values.at(engine, "tool_version") for engine in engines)
        ),
        hardware=", ".join(cards) or None,
        variant="prefill and decode apart" if any(part.role == "prefill" for part in parts) else None,
        hints=_hints(parts),
    )


def _first(*named: Any) -> str | None:
    return next((found for name in named if (found := values.text(name))), None)


def _engines(scenario: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The standardized part of each engine of a report from 0.2 on; routers and the like are none."""
    found = (values.at(component, "standardized") for component in values.entries(scenario.get("stack")))
    return [part for part in found if isinstance(part, Mapping) and part.get("kind") == "inference_engine"]


def _part(engine: Mapping[str, Any]) -> _Part:
    return _accelerated(engine.get("accelerator"), engine.get("role"), values.level(engine.get("replicas")) or 1)


def _hosts(scenario: Mapping[str, Any]) -> list[_Part]:
    """A report of 0.1 lists each engine once, `type` and `accelerator` side by side."""
    roles = values.at(scenario, "host", "type")
    cards = values.entries(values.at(scenario, "host", "accelerator"))
    return [_accelerated(card, values.at(roles, place), 1) for place, card in enumerate(cards)]


def _accelerated(card: Any, role: Any, replicas: int) -> _Part:
    sizes = {name: values.level(values.at(card, "parallelism", key)) for name, key in _PARALLEL.items()}
    return _Part(
        role=values.text(role),
        replicas=replicas,
        card=values.text(values.at(card, "model")),
        gpus=values.level(values.at(card, "count")),
        parallel={name: size for name, size in sizes.items() if size is not None},
    )


def _hints(parts: list[_Part]) -> dict[str, str]:
    gpus = [part.gpus * part.replicas for part in parts if part.gpus is not None]
    alone = parts[0] if len(parts) == 1 else None
    return values.hints(
        gpus=sum(gpus) if gpus and len(gpus) == len(parts) else None,
        replicas=alone and alone.replicas,
        roles=", ".join(f"{part.replicas} {part.role}" for part in parts if part.role),
        **(alone.parallel if alone else {}),
    )
