"""Visibility of everything that belongs to a scope, through the model that owns it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import models

from quotas.querysets import subtree

if TYPE_CHECKING:
    from quotas.models import User


def seen_scopes(user: User) -> set[int]:
    return subtree(user.memberships.values_list("scope_id", flat=True))


class ModelQuerySet(models.QuerySet[Any]):
    def visible_to(self, user: User) -> ModelQuerySet:
        """All for operators and admins; else the models of the scopes that the user may see."""
        return self if user.sees_everything else self.filter(scope_id__in=seen_scopes(user))


class OfModelQuerySet(models.QuerySet[Any]):
    """Rows that hang on a model, directly or through a profile."""

    def visible_to(self, user: User) -> OfModelQuerySet:
        if user.sees_everything:
            return self
        fields = {field.name for field in self.model._meta.get_fields()}
        path = "model" if "model" in fields else "profile__model"
        return self.filter(**{f"{path}__scope_id__in": seen_scopes(user)})


HEARD: Final = timedelta(seconds=45)
"""A run whose worker has not been heard for so long is over, and holds nothing."""


class BenchRunQuerySet(OfModelQuerySet):
    def open(self) -> BenchRunQuerySet:
        return self.filter(state__in=self.model.OPEN)

    def parked(self) -> BenchRunQuerySet:
        """Those that wait for a replica of their own, and that nobody carries meanwhile."""
        return self.filter(state=self.model.State.WAITING, parked=True)

    def heard(self, now: datetime) -> BenchRunQuerySet:
        """Open, and a worker is at it."""
        return self.open().filter(heartbeat_at__gt=now - HEARD)

    def holding(self, now: datetime) -> BenchRunQuerySet:
        """Those that have a replica to themselves now; from its start on where it is their own."""
        return self.heard(now).exclude(state=self.model.State.QUEUED).filter(replica__isnull=False)

    def without_replica(self, now: datetime) -> BenchRunQuerySet:
        """Those for which a replica is to be started."""
        waiting = self.heard(now).filter(state=self.model.State.WAITING, own_replica=True, stop_asked=False)
        return waiting.filter(replica__isnull=True)

    def giving_back(self) -> BenchRunQuerySet:
        """Those that are over, and left a replica that no plan would take back."""
        return self.filter(give_back=True, replica__isnull=False)


class MeasurementQuerySet(OfModelQuerySet):
    def best_first(self) -> MeasurementQuerySet:
        """Of a profile's measurements the one in use comes first: the newest `current`, else the newest of those that were in
        force once. What never was is none of them: an outdated file of another model must stop nobody."""
        in_force = self.exclude(status="stale", in_force_since__isnull=True)
        return in_force.order_by(models.Case(models.When(status="current", then=0), default=1), "-measured_at", "-id")
