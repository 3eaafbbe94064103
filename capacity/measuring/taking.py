"""Whether a sweep would take the only ready replica of its model."""

from __future__ import annotations

from datetime import datetime

from ..models import BenchRun, Replica


def takes_last(run: BenchRun, now: datetime) -> bool:
    """True where none would stay and nobody has said that it may."""
    if run.endpoint or run.own_replica or run.take_last:
        return False
    ready = Replica.objects.filter(profile__model=run.profile.model_id, state=Replica.State.READY, gone_at=None)
    free = ready.exclude(pk__in=BenchRun.objects.holding(now).order_by().values("replica"))
    return list(free.values_list("profile", flat=True)[:2]) == [run.profile_id]


def last_sentence(run: BenchRun) -> str:
    return (
        f"It would take the only ready replica of {run.profile.model}: none stays, and what comes is held until the sweep is "
        "over. Nobody has confirmed that (take_last, --take-last)."
    )
