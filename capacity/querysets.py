"""Visibility of everything that belongs to a scope, through the model that owns it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


class MeasurementQuerySet(OfModelQuerySet):
    def best_first(self) -> MeasurementQuerySet:
        """Of a profile's measurements the one in use comes first: the newest `current`, else the newest of all."""
        return self.order_by(models.Case(models.When(status="current", then=0), default=1), "-measured_at", "-id")
