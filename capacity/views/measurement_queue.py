"""What to measure next: profiles by how much rests on their evidence and how poor it is, each with its one button."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from quotas.services.rows import LONGEST_REASON

from ..briefings.sweep_facts import WARM_UP_SECONDS, likely_levels, minutes
from ..domain.phrases import number
from ..models import BenchRun, Measurement, Profile
from .frame import frame_of
from .live import live
from .measurements import PAGE_ROWS, to_measure
from .sweeps import has_slo, initial


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A profile to measure. `fields`: what its button sends, the usual sweep; `open_run`: one is queued or under way;
    `has_slo`: its model has bounds to measure against, without which the button would be refused."""

    profile: Any
    measurement: Measurement | None
    why: str
    fields: dict[str, Any]
    duration: str
    open_run: int | None
    has_slo: bool


@live
def measurements_queue(request: HttpRequest) -> HttpResponse:
    seen = Profile.objects.visible_to(request.user).filter(model__pool__in=frame_of(request).shown_pools)
    page = Paginator(to_measure(seen).select_related("model__slo"), PAGE_ROWS).get_page(request.GET.get("page"))
    profiles = list(page.object_list)
    used = Measurement.objects.select_related("slo").in_bulk([row.in_use for row in profiles if row.in_use])
    open_runs = dict(BenchRun.objects.open().filter(profile__in=profiles).values_list("profile_id", "pk"))
    rows = [waiting(profile, used.get(profile.in_use), open_runs.get(profile.pk)) for profile in profiles]
    return render(request, "pages/measurements_queue.html", {"rows": rows, "page": page, "place": "measurements"})


def waiting(profile: Any, measurement: Measurement | None, open_run: int | None) -> Waiting:
    usual, why = initial(profile), why_of(measurement, profile.running)
    levels = likely_levels(usual["levels"], measurement.max_concurrency if measurement else None)
    return Waiting(
        profile=profile,
        measurement=measurement,
        why=why,
        fields={**usual, "where": "own", "reason": why[:LONGEST_REASON]},
        duration=minutes(levels * (usual["seconds"] + WARM_UP_SECONDS)),
        open_run=open_run,
        has_slo=has_slo(profile.model),
    )


def why_of(measurement: Measurement | None, running: int) -> str:
    """Why it is worth a sweep, in one sentence."""
    rest = f"{number(running, 'replica')} rest{'s' if running == 1 else ''} on it" if running else "nothing runs on it"
    if measurement is None:
        return f"unmeasured; {rest}"
    if measurement.status == Measurement.Status.STALE:
        return f"outdated; {rest}"
    if measurement.status == Measurement.Status.ASSUMED:
        return f"assumed, not measured; {rest}"
    if measurement.max_concurrency == 0:
        return f"never met its SLO; {rest}"
    if not measurement.kind:
        return f"nobody knows whether {measurement.max_concurrency} in flight is its limit; {rest}"
    return f"nothing above {measurement.max_concurrency} in flight was judged; {rest}"
