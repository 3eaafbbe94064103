"""An edit of a profile, a model or an SLO that moves fingerprints: what it makes outdated, said before and done with the save."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Final

from django.utils import timezone

from quotas.models import User
from quotas.services import rows
from quotas.services.rows import Findings, rule_for, stored_row

from ..domain.fingerprint import Purpose, Run, fingerprint, run_fingerprint
from ..domain.phrases import number
from ..fingerprints import purpose_of, run_of
from ..models import LanguageModel, Measurement, Profile, Replica, Slo

Edited = Profile | LanguageModel | Slo
NAMES: Final[Mapping[str, str]] = {"slo": "SLO", "resource": "class"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A profile whose fingerprint an edit moves, with what was before and what is then."""

    profile: Profile
    run_before: Run
    run: Run
    purpose_before: Purpose
    purpose: Purpose

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.run, self.purpose)

    @property
    def runs_another(self) -> bool:
        return self.run != self.run_before

    @property
    def is_moved(self) -> bool:
        return self.runs_another or self.purpose != self.purpose_before

    @property
    def words(self) -> str:
        """What changed, each as `engine version 0.10 → 0.11`."""
        return "; ".join([*_differences(self.run_before, self.run), *_differences(self.purpose_before, self.purpose)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdating:
    """What an edit would make outdated, or has. `waiting`: replicas of profiles whose replacing is paused."""

    changed: tuple[str, ...] = ()
    measurements: tuple[int, ...] = ()
    replicas: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """With the numbers; empty where nothing becomes outdated."""
        said = "; ".join([*self._of_measurements(), *self._of_replicas()])
        return f"{said[0].upper()}{said[1:]}." if said else ""

    def _of_measurements(self) -> Iterable[str]:
        if self.measurements:
            it, is_ = ("it", "it is") if len(self.measurements) == 1 else ("them", "they are")
            what = number(len(self.measurements), "measurement")
            yield f"this makes {what} outdated: nothing is taken back on {it} until {is_} measured again"

    def _of_replicas(self) -> Iterable[str]:
        for names, fate in ((self.replicas, "replaced one at a time"), (self.waiting, "not replaced while replacing is paused")):
            if names:
                run, are = ("runs", "is") if len(names) == 1 else ("run", "are")
                yield f"{number(len(names), 'replica')} {run} the old one and {are} {fate}"


def _differences(before: Run | Purpose, after: Run | Purpose) -> Iterable[str]:
    for field in fields(before):
        old, new = getattr(before, field.name), getattr(after, field.name)
        if isinstance(old, dict):
            yield from (_difference(key, old.get(key), new.get(key)) for key in sorted(old | new) if old.get(key) != new.get(key))
        elif old != new:
            yield _difference(NAMES.get(field.name, field.name.replace("_", " ")), old, new)


def _difference(name: str, old: object, new: object) -> str:
    return f"{name} {_said(old)} → {_said(new)}"


def _said(value: object) -> str:
    return "none" if value in ("", None) else str(value)


# --- what an edit moves -------------------------------------------------------------------------------------------
def moved_by(row: Edited, stored: Edited | None) -> list[Moved]:
    """The profiles whose fingerprint is another with `row` than with `stored`; none of a new row."""
    if stored is None:
        return []
    return [found for found in _FINDERS[type(row)](row, stored) if found.is_moved]


def _of_profile(row: Profile, stored: Profile) -> list[Moved]:
    if row.model_id != stored.model_id:
        return []  # refused
    model = stored.model
    purpose = purpose_of(model, model.slo)
    runs = {"run_before": run_of(stored, model.name), "run": run_of(row, model.name)}
    return [Moved(profile=row, purpose_before=purpose, purpose=purpose, **runs)]


def _of_model(row: LanguageModel, stored: LanguageModel) -> list[Moved]:
    before, after = purpose_of(stored, stored.slo), purpose_of(row, row.slo)
    if before == after and row.name == stored.name:
        return []
    return [
        Moved(
            profile=profile,
            run_before=run_of(profile, stored.name),
            run=run_of(profile, row.name),
            purpose_before=before,
            purpose=after,
        )
        for profile in Profile.objects.filter(model=stored)
    ]


def _of_slo(row: Slo | None, stored: Slo) -> list[Moved]:
    """`row` None: it goes."""
    found = []
    for profile in Profile.objects.filter(model__slo=stored).select_related("model"):
        run = run_of(profile, profile.model.name)
        purposes = {"purpose_before": purpose_of(profile.model, stored), "purpose": purpose_of(profile.model, row)}
        found.append(Moved(profile=profile, run_before=run, run=run, **purposes))
    return found


_FINDERS: Final[Mapping[type[Edited], Callable[..., list[Moved]]]] = {
    Profile: _of_profile,
    LanguageModel: _of_model,
    Slo: _of_slo,
}


# --- what becomes outdated by it ----------------------------------------------------------------------------------
def outdating(row: Edited) -> Outdating:
    """What saving `row` would make outdated. Writes nothing."""
    return _outdating(moved_by(row, stored_row(row)))


def outdating_without(slo: Slo) -> Outdating:
    """What deleting it would make outdated."""
    return _outdating([found for found in _of_slo(None, slo) if found.is_moved])


def _outdating(found: list[Moved]) -> Outdating:
    if not found:
        return Outdating()
    replicas = _outdated_replicas(found)
    paused = {moved.profile.pk for moved in found if moved.profile.replacing_paused}
    return Outdating(
        changed=tuple(dict.fromkeys(moved.words for moved in found)),
        measurements=tuple(row.pk for row, _ in _left_behind(found)),
        replicas=tuple(row.name for row in replicas if row.profile_id not in paused),
        waiting=tuple(row.name for row in replicas if row.profile_id in paused),
    )


def _left_behind(found: Iterable[Moved]) -> list[tuple[Measurement, Moved]]:
    """Measurements in force that were made of something else. Of what an unmarked one was made nobody knows."""
    by_profile = {moved.profile.pk: moved for moved in found}
    current = Measurement.objects.filter(profile__in=by_profile, status=Measurement.Status.CURRENT).exclude(fingerprint="")
    pairs = [(row, by_profile[row.profile_id]) for row in current.order_by("pk")]
    return [(row, moved) for row, moved in pairs if row.fingerprint != moved.fingerprint]


def _outdated_replicas(found: Iterable[Moved]) -> list[Replica]:
    now = {moved.profile.pk: run_fingerprint(moved.run) for moved in found if moved.runs_another}
    there = Replica.objects.filter(profile__in=now, gone_at__isnull=True).exclude(fingerprint="")
    return [row for row in there.order_by("name") if row.fingerprint != now[row.profile_id]]


@rule_for(Profile, LanguageModel, Slo)
def warn_of_what_becomes_outdated(row: Edited, stored: Edited | None, findings: Findings) -> None:
    if sentence := _outdating(moved_by(row, stored)).sentence:
        findings.warn(sentence)


# --- with the save ------------------------------------------------------------------------------------------------
@rows.after_save_of(Profile)
@rows.after_save_of(LanguageModel)
@rows.after_save_of(Slo)
def mark_measurements(row: Edited, stored: Edited | None, actor: User | None, reason: str) -> None:
    """Measurements of what was before are outdated at once; those of what is again come back into force."""
    _mark(moved_by(row, stored), actor, reason)


@rows.before_delete_of(Slo)
def mark_without(slo: Slo, actor: User | None, reason: str) -> None:
    _mark([found for found in _of_slo(None, slo) if found.is_moved], actor, reason)


def _mark(found: list[Moved], actor: User | None, reason: str) -> None:
    for measurement, moved in _left_behind(found):
        measurement.status, measurement.stale_cause = Measurement.Status.STALE, Measurement.Cause.FINGERPRINT
        measurement.stale_why = f"The profile has changed: {moved.words}."
        rows.write(measurement, actor=actor, reason=reason)
    for moved in found:
        back = Measurement.objects.filter(profile=moved.profile, fingerprint=moved.fingerprint)
        for measurement in back.filter(status=Measurement.Status.STALE, stale_cause=Measurement.Cause.FINGERPRINT):
            measurement.status = Measurement.Status.CURRENT
            measurement.stale_cause = measurement.stale_why = ""
            measurement.in_force_since = measurement.in_force_since or timezone.now()
            rows.write(measurement, actor=actor, reason=reason)
