"""Rows as what a fingerprint is made of: what a replica of a profile runs, and what the profile is measured for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from .domain.fingerprint import Purpose, Run, fingerprint, run_fingerprint
from .domain.measurement.types import LATENCIES

if TYPE_CHECKING:
    from .models import LanguageModel, Profile, Slo
    from .rows import ProfileRow, ReplicaRow


class Way(Protocol):
    """A profile, as a row of the database or of a pass."""

    @property
    def engine(self) -> str: ...
    @property
    def engine_version(self) -> str: ...
    @property
    def template(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def units(self) -> int: ...
    @property
    def hosts(self) -> int: ...
    @property
    def parameters(self) -> Mapping[str, str]: ...


def run_of(profile: Way, model: str) -> Run:
    """What a replica of `profile` would run for the model of that name, started now."""
    return Run(
        model=model,
        engine=profile.engine,
        engine_version=profile.engine_version,
        template=profile.template,
        resource=profile.resource,
        units=profile.units,
        hosts=profile.hosts,
        parameters=profile.parameters if isinstance(profile.parameters, dict) else {},
    )


def run_print(profile: Way, model: str) -> str:
    """The run fingerprint, 64 hex digits: a replica that is started now carries it."""
    return run_fingerprint(run_of(profile, model))


class Prints:
    """The run fingerprints of profiles, each made once and only where a replica is held against it."""

    def __init__(self, profiles: Mapping[tuple[str, str], ProfileRow]) -> None:
        self._profiles = profiles
        self._made: dict[tuple[str, str], str] = {}

    def is_outdated(self, replica: ReplicaRow) -> bool:
        """Whether it runs what its profile was before. Never while the profile's replacing is paused, or where nobody knows."""
        key = (replica.model, replica.profile)
        if not replica.fingerprint or self._profiles[key].replacing_paused:
            return False
        if key not in self._made:
            self._made[key] = run_print(self._profiles[key], replica.model)
        return replica.fingerprint != self._made[key]


def purpose_of(model: LanguageModel, slo: Slo | None) -> Purpose:
    """What a measurement of the model is made for, under that SLO."""
    return Purpose(slo=slo_text(slo), input_tokens=model.input_tokens, output_tokens=model.output_tokens)


def measuring_print(profile: Profile, slo: Slo | None) -> str:
    """The fingerprint of a measurement that is made of `profile` now, under `slo`."""
    return fingerprint(run_of(profile, profile.model.name), purpose_of(profile.model, slo))


def present_print(profile: Profile) -> str:
    """The fingerprint that a measurement must carry to be in force: as the profile is now, under its model's SLO."""
    return measuring_print(profile, profile.model.slo)


def slo_text(slo: Slo | None) -> str:
    """Its bounds in words, `ttft p95 ≤ 500 ms, errors ≤ 1 %`; empty where there is none."""
    if slo is None:
        return ""
    bounds = [(name, getattr(slo, f"{name}_percentile"), getattr(slo, f"{name}_ms")) for name in LATENCIES]
    said = [f"{name} p{percentile} ≤ {ms} ms" for name, percentile, ms in bounds if percentile is not None and ms is not None]
    return ", ".join([*said, f"errors ≤ {100 * float(slo.max_error_share):g} %"]) if said else ""
