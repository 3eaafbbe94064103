"""A stored sweep read back, so that it can be judged again under another SLO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

from .combine import by_level
from .slo_text import parse_slo
from .sound import sound
from .types import DEFAULT_ERROR_SHARE, Flag, Setting, Slo, Stage, Statistics, Sweep


def sweep_of(evidence: object) -> Sweep | None:
    """The sweep that `document.evidence_of` wrote; None where the evidence is typed by hand or holds no stages. Never raises."""
    if not isinstance(evidence, Mapping):
        return None
    stages = evidence.get("stages")
    if not isinstance(stages, list) or not stages or not all(isinstance(stage, Mapping) for stage in stages):
        return None
    setting = evidence.get("setting")
    read = tuple(sorted((sound(_stage(stage)) for stage in stages), key=by_level))
    return Sweep(setting=_setting(setting if isinstance(setting, Mapping) else {}), stages=read)


def slo_of(evidence: object) -> Slo | None:
    """The SLO that it was judged by, None where it names none."""
    if not isinstance(evidence, Mapping) or not isinstance(evidence.get("slo"), str):
        return None
    try:
        read = parse_slo(evidence["slo"])
    except ValueError:
        return None
    share = evidence.get("max_error_share")
    known = isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
    return Slo(bounds=read.bounds, max_error_share=float(cast(float, share)) if known else DEFAULT_ERROR_SHARE)


def _stage(found: Mapping[str, Any]) -> Stage:
    flags = found.get("flags")
    known = [flag for flag in flags if flag in get_args(Flag)] if isinstance(flags, list) else []
    return Stage(
        where=_text(found.get("where")) or "",
        asked=found.get("asked"),
        mean_in_flight=found.get("mean_in_flight"),
        requests=found.get("requests"),
        errors=found.get("errors"),
        incomplete=found.get("incomplete"),
        seconds=found.get("seconds"),
        tokens_per_second=found.get("tokens_per_second"),
        ttft_ms=_statistics(found.get("ttft_ms")),
        tpot_ms=_statistics(found.get("tpot_ms")),
        e2e_ms=_statistics(found.get("e2e_ms")),
        flags=frozenset(cast("list[Flag]", known)),
    )


def _statistics(found: object) -> Statistics:
    return {str(name): value for name, value in found.items() if value is not None} if isinstance(found, Mapping) else {}


def _setting(found: Mapping[str, Any]) -> Setting:
    hints = found.get("hints")
    return Setting(
        tool=_text(found.get("tool")) or "unknown",
        tool_version=_text(found.get("tool_version")),
        model=_text(found.get("model")),
        engine=_text(found.get("engine")),
        engine_version=_text(found.get("engine_version")),
        hardware=_text(found.get("hardware")),
        input_tokens=_length(found.get("input_tokens")),
        output_tokens=_length(found.get("output_tokens")),
        drawn=found.get("drawn") is True,
        dataset=_text(found.get("dataset")),
        variant=_text(found.get("variant")),
        hints={str(name): str(text) for name, text in hints.items()} if isinstance(hints, Mapping) else {},
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _length(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
