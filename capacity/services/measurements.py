"""A judged sweep becomes a measurement of a profile: once, with all that it rests on; and an outdated one is accepted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.utils import timezone

from quotas.models import User
from quotas.services import exclusive, rows, save

from ..domain.fingerprint import Run, fingerprint, print_for, run_fingerprint
from ..domain.measurement.contradiction import Contradictions, contradictions
from ..domain.measurement.document import evidence_of, measured_document, setting_document, stage_document
from ..domain.measurement.in_force import Said, aside_why, placed, replaces
from ..domain.measurement.level import whole_level
from ..domain.measurement.slo_text import slo_text
from ..domain.measurement.types import Judgement, Measured, Slo
from ..fingerprints import purpose_of, run_of
from ..models import Measurement, Profile
from ..querysets import MeasurementQuerySet
from ..slo_rows import row_of_slo

SIX_DIGITS: Final = Decimal("0.000001")
CHANGED: Final = "It was measured of what the profile was before it was changed."
UNASKED: Final = "Say why it is stored: the reason stands in the history."


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a sweep comes from. `files`: `name` and `sha256` of each; `cache_hit_rate` 0–1; None is unknown."""

    files: Sequence[Mapping[str, str]] = ()
    measured_at: datetime | None = None
    cache_hit_rate: float | None = None
    engine_version: str = ""
    """What the engine itself said, where llmgw ran the sweep; the file's stands before it."""
    sweep: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON of a sweep that llmgw ran, beyond its stages: what was asked, and what else is known of each level."""
    outside: bool = False
    """llmgw swept an address outside of its fleet."""
    run_print: str = ""
    """The run fingerprint of the replica that llmgw swept; empty: unknown."""


NOWHERE: Final = Origin()


def measurement_store(
    profile: Profile,
    judgement: Judgement,
    *,
    slo: Slo | None,
    actor: User | None,
    reason: str,
    replicas: int = 1,
    concurrency: int | None = None,
    origin: Origin = NOWHERE,
) -> tuple[Measurement, list[str]]:
    """Stores it as current and in force; as outdated where the sweep contradicts the profile, and set aside where it says less
    than what is in force or was made elsewhere: a warning says so, and a person may accept it.

    `judgement` was judged by `slo` with `replicas`. `concurrency`: requests in flight that a person states, where the sweep says
    none. The same sweep, judged alike, is one measurement: the stored one comes back with a warning. ValidationError where it
    gives no measurement, or without a reason."""
    if not reason.strip():
        raise ValidationError({"reason": UNASKED})
    with exclusive():  # what it is held against must not change before it is written
        now = Profile.objects.select_related("model__slo").filter(pk=profile.pk).first()
        if now is None:
            raise ValidationError({"profile": "The profile is gone: nothing is stored."})
        row, warnings = measurement_of(now, judgement, slo=slo, replicas=replicas, concurrency=concurrency, origin=origin)
        there = Measurement.objects.filter(profile=profile, digest=row.digest).first()
        if there is not None:
            return there, [f"This sweep is measurement {there.pk} of {profile} already: nothing is stored."]
        warnings += save(row, actor=actor, reason=reason.strip())
        row.is_new = True
        return row, warnings


def measurement_of(
    profile: Profile,
    judgement: Judgement,
    *,
    slo: Slo | None,
    replicas: int = 1,
    concurrency: int | None = None,
    origin: Origin = NOWHERE,
) -> tuple[Measurement, list[str]]:
    """The row that storing would write, and what it would warn of. Writes nothing."""
    judged = judgement if concurrency is None else stated(judgement, concurrency, replicas)
    if judged.measured is None:
        raise ValidationError(
            f"{judged.why.rstrip('.')}: it gives no measurement. State the concurrency to store it all the same."
        )
    evidence = evidence_of(judged, slo=slo, replicas=replicas, files=origin.files, cache_hit_rate=origin.cache_hit_rate)
    if origin.engine_version and not judged.sweep.setting.engine_version:
        evidence["setting"]["engine_version"] = origin.engine_version
    if origin.sweep:
        evidence["sweep"] = dict(origin.sweep)
    row = Measurement(
        profile=profile,
        max_concurrency=judged.measured.max_concurrency,
        tokens_per_second=Decimal(str(judged.measured.tokens_per_second)).quantize(SIX_DIGITS),
        kind=judged.measured.kind,
        slo=None if slo is None else row_of_slo(slo),
        status=Measurement.Status.CURRENT,
        evidence=evidence,
        digest=digest_of(judged, slo, replicas),
        measured_at=origin.measured_at or timezone.now(),
    )
    return row, [*_held_against(row, judged, slo, origin), *_set_aside(row, origin)]


def stated(judgement: Judgement, concurrency: int, replicas: int) -> Judgement:
    """The same with a concurrency that a person states; its tokens are of the level that is so many in flight."""
    if judgement.measured is not None:
        raise ValidationError(
            {"concurrency": f"The sweep itself says {judgement.measured.max_concurrency} in flight: leave the concurrency out."}
        )
    if concurrency < 1:
        raise ValidationError({"concurrency": "State at least 1 request in flight."})
    levels = {whole_level(stage): stage for stage in judgement.sweep.stages if stage.tokens_per_second is not None}
    alone = levels[None] if set(levels) == {None} and len(judgement.sweep.stages) == 1 else None
    chosen = levels.get(concurrency * replicas, alone)
    if chosen is None or chosen.tokens_per_second is None:
        known = ", ".join(str(level // replicas) for level in sorted(level for level in levels if level) if level >= replicas)
        raise ValidationError({"concurrency": f"The sweep has no tokens/s at {concurrency} in flight; it has {known or 'none'}."})
    measured = Measured(max_concurrency=concurrency, tokens_per_second=chosen.tokens_per_second / replicas, kind="not_binding")
    why = f"{concurrency} in flight is what a person states. {judgement.why}"
    return replace(judgement, measured=measured, chosen=chosen, why=why)


def digest_of(judgement: Judgement, slo: Slo | None, replicas: int) -> str:
    """Of what was found and how it was judged; not of where it was read."""
    setting = {**setting_document(judgement.sweep.setting), "hints": None}
    stages = [{**stage_document(stage), "flags": None} for stage in judgement.sweep.stages]
    judged = [slo_text(slo) if slo else None, replicas, measured_document(judgement.measured) if judgement.measured else None]
    return hashlib.sha256(json.dumps([setting, stages, judged], sort_keys=True).encode()).hexdigest()


def _held_against(row: Measurement, judgement: Judgement, slo: Slo | None, origin: Origin) -> list[str]:
    """Stamps what it was measured of, and marks it outdated where that is not what the profile is."""
    profile, model = row.profile, row.profile.model
    run = run_of(profile, model.name)
    setting = judgement.sweep.setting
    version = setting.engine_version or origin.engine_version
    found = contradictions(run, replace(setting, engine_version=version or None), model.served_names)
    said = [*found.sentences, *_of_slo(row, slo)]
    purpose = purpose_of(model, row.slo if model.slo else None)
    if not found.elsewhere:
        row.fingerprint = fingerprint(_as_measured(run, found), purpose)
    if origin.run_print not in ("", run_fingerprint(run)):
        said.append(CHANGED)
        row.fingerprint = print_for(origin.run_print, purpose)
    if not said:
        return []
    row.status, row.stale_cause, row.in_force_since = Measurement.Status.STALE, Measurement.Cause.FINGERPRINT, None
    row.stale_why = " ".join(said)
    return [f"Stored as outdated: {row.stale_why} Nothing rests on it until it is accepted."]


def _set_aside(row: Measurement, origin: Origin) -> list[str]:
    """Beside what is in force: set aside, or what it takes the place of."""
    if row.status != Measurement.Status.CURRENT:
        return []
    before = in_force(row.profile)
    new, old = said_of(row), said_of(before) if before else None
    why = aside_why(new, old, outside=origin.outside)
    if not why:
        return [sentence] if (sentence := placed(new, old)) else []
    row.status, row.stale_cause, row.in_force_since = Measurement.Status.STALE, Measurement.Cause.ASIDE, None
    row.stale_why = why
    return [f"Set aside: {why} Nothing rests on it until somebody puts it in force."]


def in_force(profile: Profile) -> Measurement | None:
    """The one that a plan rests on."""
    found: Measurement | None = Measurement.objects.filter(profile=profile).best_first().first()
    return found


def said_of(row: Measurement) -> Said:
    is_current = row.status == Measurement.Status.CURRENT
    return Said(max_concurrency=row.max_concurrency, kind=row.kind, measured_at=row.measured_at, is_current=is_current)


def replacing(row: Measurement, before: Measurement | None) -> str:
    """What putting it in force comes to, in numbers. `before`: the one that a plan rests on now."""
    if before is not None and before.pk == row.pk:
        return "It is in use, as what was in force last; it then counts for removals too."
    return replaces(said_of(row), said_of(before) if before else None)


def _as_measured(run: Run, found: Contradictions) -> Run:
    return replace(run, engine=found.engine or run.engine, engine_version=found.engine_version or run.engine_version)


def _of_slo(row: Measurement, slo: Slo | None) -> list[str]:
    wanted = row.profile.model.slo
    if wanted is None or row.slo == wanted:
        return []
    return [f"It was judged by {slo_text(slo) if slo else 'no SLO'}, and {row.profile.model} is to keep {wanted}."]


def measurement_accept(measurement: Measurement, *, actor: User | None, reason: str) -> list[str]:
    """It is in force from now on, for the profile as it is now; what came before it is set aside and may come back. Warnings
    say what it takes the place of. Refused without a reason, and where it is in force or was only assumed."""
    if not reason.strip():
        raise ValidationError({"reason": "Say why it is good for the profile as it is: give a reason."})
    with exclusive():
        said = acceptance(measurement)
        ranked = list(_currents(measurement.profile))
        measurement.status = Measurement.Status.CURRENT
        warnings = save(measurement, actor=actor, reason=reason.strip())
        for row in ranked:
            if (row.measured_at, row.pk) > (measurement.measured_at, measurement.pk):
                _step_aside(row, measurement, actor, reason.strip())
        return [*warnings, *said]


def acceptance(measurement: Measurement) -> list[str]:
    """What putting it in force would come to. Writes nothing. ValidationError where it is in force, or was only assumed."""
    first = _currents(measurement.profile).first()
    if measurement.status == Measurement.Status.ASSUMED or (first is not None and first.pk == measurement.pk):
        raise ValidationError(f"It is {measurement.status_word}, not outdated: there is nothing to accept.")
    return [replacing(measurement, in_force(measurement.profile))]


def _currents(profile: Profile) -> MeasurementQuerySet:
    found: MeasurementQuerySet = Measurement.objects.filter(profile=profile, status=Measurement.Status.CURRENT).best_first()
    return found


def _step_aside(row: Measurement, chosen: Measurement, actor: User | None, reason: str) -> None:
    row.status, row.stale_cause, row.in_force_since = Measurement.Status.STALE, Measurement.Cause.ASIDE, None
    row.stale_why = f"Measurement {chosen.pk} was put in force instead: {said_of(chosen).briefly}."
    rows.write(row, actor=actor, reason=reason)
