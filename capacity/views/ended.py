"""Replicas of a model that ended by themselves in the last hour: how, and with which last words."""

from __future__ import annotations

from datetime import datetime, timedelta

from ..models import LanguageModel, Replica

SHOWN_FOR = timedelta(hours=1)
MOST_SHOWN = 10


def ended_by_themselves(model: LanguageModel, now: datetime) -> list[Replica]:
    """The newest first. One that was asked to end has no message; one that was only watched did not end, but was forgotten."""
    gone = Replica.objects.filter(model=model, gone_at__gte=now - SHOWN_FOR, is_registered=False).exclude(message="")
    return list(gone.order_by("-gone_at", "-id")[:MOST_SHOWN])


def ends_of(replicas: list[Replica]) -> dict[str, datetime]:
    """Name → when it ended by itself."""
    return {replica.name: replica.gone_at for replica in replicas if replica.gone_at and replica.message}
