"""What a measurement was made of, as a digest: when the profile's moves on, the measurement is outdated.

Two digests: `run_fingerprint` of what a replica runs (it goes with each replica that is started), and `fingerprint` of that with
what it was measured for. A new SLO makes measurements outdated, never replicas.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a replica of a profile runs."""

    model: str
    engine: str
    engine_version: str
    template: str
    resource: str
    units: int
    hosts: int
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """What it is measured for: the SLO's bounds as text (empty: none), and the usual lengths of a request (None: not said)."""

    slo: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None


def run_fingerprint(run: Run) -> str:
    parts = [run.model, run.engine, run.engine_version, run.template, run.resource, run.units, run.hosts]
    return _digest([*parts, sorted(run.parameters.items())])


def fingerprint(run: Run, purpose: Purpose) -> str:
    return print_for(run_fingerprint(run), purpose)


def print_for(run_print: str, purpose: Purpose) -> str:
    """As `fingerprint`, of what a replica's own run fingerprint says that it runs."""
    return _digest([run_print, purpose.slo, purpose.input_tokens, purpose.output_tokens])


def _digest(parts: object) -> str:
    """64 hex digits of the parts' JSON."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()
