"""llmgw's own export of a measurement, `llmgw.measurement/1`: read back as the sweep that it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from capacity.bench.formats.contract import Opened, Unreadable
from capacity.domain.measurement.contradiction import MEASURED_OF
from capacity.domain.measurement.evidence import slo_of, sweep_of
from capacity.domain.measurement.slo_text import slo_text
from capacity.domain.measurement.types import Contents

NAME: Final = "llmgw"
FORMAT: Final = "llmgw.measurement/1"
SLO, REPLICAS, CONCURRENCY, MEASURED_AT = "judged by", "replicas", "stated concurrency", "measured at"
"""Hints: what an import takes where the person says nothing else."""


def recognises(opened: Opened) -> bool:
    found = opened.documents[0] if opened.shape == "object" and opened.documents else None
    return isinstance(found, dict) and found.get("format") == FORMAT


def read(opened: Opened) -> Contents:
    """Its stages with the flags that they had; judging gives those of the SLO anew. How it was judged goes with its hints."""
    document = opened.documents[0]
    evidence = document.get("evidence")
    sweep = sweep_of(evidence)
    if sweep is None or not isinstance(evidence, dict):
        raise Unreadable("it is an exported measurement without stages: it was typed in, and is typed in again.")
    setting = replace(sweep.setting, hints={**sweep.setting.hints, **_how_judged(document, evidence)})
    return Contents(stages=tuple((setting, stage) for stage in sweep.stages))


def _how_judged(document: Mapping[str, Any], evidence: Mapping[str, Any]) -> dict[str, str]:
    """The SLO as text, how many replicas stood behind it, the concurrency that a person stated, and when."""
    stated = document.get("max_concurrency") if document.get("kind") == "not_binding" else None
    slo = slo_of(evidence)
    told = {
        SLO: None if slo is None else slo_text(slo),
        REPLICAS: evidence.get("replicas"),
        CONCURRENCY: stated,
        MEASURED_AT: document.get("measured_at"),
    }
    said = {name: str(value) for name, value in told.items() if isinstance(value, str | int) and value != ""}
    return said | _measured_of(document)


def _measured_of(document: Mapping[str, Any]) -> dict[str, str]:
    """What the profile was; exports of before say class, units and hosts beside the numbers. An empty text is said, too."""
    run = document.get("run")
    found = run if isinstance(run, dict) else document
    return {hint: str(found[name]) for name, hint in MEASURED_OF.items() if isinstance(found.get(name), str | int)}
