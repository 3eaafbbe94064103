"""What a sweep has shown becomes a measurement of its profile."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.core.exceptions import ValidationError

from quotas.models import User

from .. import services
from ..bench.asked import Swept
from ..domain.measurement.judge import judge
from ..domain.measurement.types import Slo, Sweep
from ..fingerprints import run_print
from ..models import BenchRun, Measurement


def runs(run: BenchRun) -> str:
    """The run fingerprint of what is swept: the replica's own; where it has none, and outside of the fleet, the profile's now."""
    own = run.replica.fingerprint if run.replica else ""
    return own or run_print(run.profile, run.profile.model.name)


def store(run: BenchRun, slo: Slo, swept: Swept, was: str, now: datetime) -> tuple[Measurement | None, str]:
    """The stored measurement, None where the sweep gives none, and the sentence that says so. `was`: what `runs` said when the
    sweep began; where the profile is another by now, the measurement is outdated."""
    judgement = judge(Sweep(setting=swept.setting, stages=swept.stages), slo)
    if judgement.measured is None:
        return None, f"It gives no measurement: {judgement.why}"
    actor = User.objects.filter(username=run.actor).first()
    try:
        stored, warnings = services.measurement_store(
            run.profile,
            judgement,
            slo=slo,
            actor=actor,
            reason=reason_of(run),
            origin=replace(origin_of(swept, now), run_print=was, outside=bool(run.endpoint)),
        )
    except ValidationError as error:
        return None, f"It was measured and not stored: {' '.join(error.messages)}"
    return stored, " ".join([judgement.why, *warnings])


def origin_of(swept: Swept, now: datetime) -> services.Origin:
    """What the engine said of itself stands beside the profile's version."""
    version = swept.setting.engine_version or swept.evidence.get("engine_version") or ""
    rate = swept.evidence.get("cache_hit_rate")
    return services.Origin(
        measured_at=now,
        cache_hit_rate=rate if isinstance(rate, int | float) else None,
        engine_version=str(version),
        sweep=swept.evidence,
    )


def reason_of(run: BenchRun) -> str:
    return f"sweep {run.pk}: {run.reason}"[:100]
