"""Whether a sweep was made of something else than a profile is (pure). What a file does not say contradicts nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..fingerprint import Run
from .types import Setting

PRODUCT = re.compile(r"[a-z]{1,4}\d{2,4}[a-z]{0,3}")
"""A GPU's name within a text: `h100`, `l40s`, `mi300x`; sizes of memory begin with a digit."""
SHORTEST_NAME = 4
"""Parameters of a template may name the model; shorter ones are counts and switches."""

MEASURED_OF: Final = {
    "resource": "measured on class",
    "units": "measured on units",
    "hosts": "measured on hosts",
    "template": "measured with template",
    "parameters": "measured with parameters",
}
"""Hints in which llmgw's own export says what the profile was that it was measured of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradictions:
    """`sentences` say each; `engine` and `engine_version` are what was measured, where it is another than the profile's.
    `elsewhere`: other hardware, another model or another profile, which no edit of the profile turns into what was measured."""

    sentences: tuple[str, ...] = ()
    elsewhere: bool = False
    engine: str = ""
    engine_version: str = ""


def contradictions(run: Run, setting: Setting, served_names: Sequence[str] = ()) -> Contradictions:
    """Engine, version, hardware and model of a sweep against what a replica of the profile runs."""
    engine = setting.engine if setting.engine and run.engine and _plain(setting.engine) != _plain(run.engine) else ""
    version = setting.engine_version or ""
    moved = version if version and run.engine_version and _number(version) != _number(run.engine_version) else ""
    of_engine = [
        f"It was measured on {engine}, and the profile runs {run.engine}." if engine else "",
        f"It was measured on version {moved}, and the profile runs {run.engine_version}." if moved else "",
    ]
    elsewhere = [_of_hardware(run.resource, setting.hardware), _of_model(run, setting.model, served_names)]
    elsewhere += _of_profile(run, setting.hints)
    return Contradictions(
        sentences=tuple(text for text in (*of_engine, *elsewhere) if text),
        elsewhere=any(elsewhere),
        engine=engine or "",
        engine_version=moved,
    )


def run_facts(run: Run) -> dict[str, str]:
    """What an export says of the profile, by the names of `MEASURED_OF`, as text."""
    parameters = ", ".join(f"{name}={value}" for name, value in sorted(run.parameters.items()))
    facts = {"resource": run.resource, "units": run.units, "hosts": run.hosts, "template": run.template}
    return {name: str(value) for name, value in {**facts, "parameters": parameters}.items()}


def _of_profile(run: Run, hints: Mapping[str, str]) -> list[str]:
    now = run_facts(run)
    said = [(hint, hints[hint], now[name]) for name, hint in MEASURED_OF.items() if hint in hints]
    return [
        f"It was {hint} {before or 'none'}, and the profile has {after or 'none'}."
        for hint, before, after in said
        if before != after
    ]


def _of_hardware(resource: str, hardware: str | None) -> str:
    found, wanted = _products(hardware or ""), _products(resource)
    if not found or not wanted or found & wanted:
        return ""
    return f"It was measured on {hardware}, and the profile takes {resource}."


def _products(text: str) -> set[str]:
    words = re.split(r"[^a-z0-9]+", text.lower())
    return {found for word in words if PRODUCT.fullmatch(found := re.sub(r"^\d+x", "", word))}


def _of_model(run: Run, measured: str | None, served_names: Iterable[str]) -> str:
    """Names are written in many ways: one that holds the other is the same; a path counts by its last part."""
    if not measured:
        return ""
    found = _plain(measured.rstrip("/").rpartition("/")[2])
    paths = [value for value in run.parameters.values() if len(value) >= SHORTEST_NAME]
    names = [_plain(name.rstrip("/").rpartition("/")[2]) for name in (run.model, *served_names, *paths)]
    if not found or any(name and (name in found or found in name) for name in names):
        return ""
    said = f"It was measured with {measured}, and the profile serves {run.model}."
    return f"{said} Where both are one, add “{measured}” to the served names of {run.model}, or accept it."


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _number(version: str) -> str:
    return version.strip().lower().removeprefix("v")
