"""The catalogue's addresses: what each lists, who sees it, who writes it."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from capacity import services
from capacity.api import bodies, catalog
from capacity.api.access import visible_nodes, visible_pools
from capacity.models import LanguageModel, Measurement, Node, PoolSettings, Price, Profile, Replica, Sample, Slo
from capacity.services.outdating import outdating
from quotas.api.base import require
from quotas.api.catalog import Catalog
from quotas.models import Pool, User


class Edited(Catalog):
    save = staticmethod(services.save)
    remove = staticmethod(services.delete)


class Previewed(Edited):
    """Rows whose edit may make measurements and replicas outdated."""

    @extend_schema(responses={200: bodies.Previewed, **bodies.refused(400, 403, 404)})
    def preview(self, request: Any, **path: Any) -> Response:
        """What a PATCH of these fields would warn of and make outdated. It refuses what that would refuse; nothing is changed."""
        row = self.found()
        require(self.may_write(request.user), self.writers)
        given = self.get_serializer(row, data=request.data, partial=True)
        given.is_valid(raise_exception=True)
        self.apply(row, given)
        warnings, found = services.check(row), outdating(row)
        told = {"warnings": warnings, "changed": found.changed, "measurements": found.measurements}
        return Response(bodies.Previewed({**told, "replicas": found.replicas, "waiting": found.waiting}).data)


@extend_schema(tags=["pools"])
class Pools(Edited):
    """Operators edit settings; admins make and remove pools."""

    serializer_class = catalog.PoolSerializer
    filters = {"name": "pool__name", "search": "pool__name__icontains"}
    lookup_field = "pool__name"
    lookup_url_kwarg = "name"
    writers = "Operators may edit a pool's settings; admins make and remove pools."

    def rows(self, user: User) -> QuerySet[PoolSettings]:
        rows = PoolSettings.objects.select_related("pool__lease").order_by("pool__name")
        return rows if user.sees_everything else rows.filter(pool__in=visible_pools(user))

    def may_write(self, user: User) -> bool:
        return user.is_superuser if self.action in {"create", "destroy"} else user.may_operate

    def apply(self, row: PoolSettings, given: Any) -> dict[str, Any]:
        """The name is the pool's, all else the settings'."""
        named = given.validated_data.pop("pool", {})
        return {**super().apply(row, given), **named}

    def store(self, row: PoolSettings, extra: dict[str, Any], reason: str) -> list[str]:
        name = extra.get("name")
        if row.pk is None:
            self._furnish(row, services.pool_create(name, actor=self.request.user, reason=reason))
        elif name is not None and name != row.pool.name:
            row.pool.name = name
            services.save(row.pool, actor=self.request.user, reason=reason)
        return services.save(row, actor=self.request.user, reason=reason)

    @staticmethod
    def _furnish(row: PoolSettings, pool: Pool) -> None:
        """A new pool has its settings already: the given ones take their place."""
        row.pool, row.pk = pool, pool.settings.pk
        row._state.adding = False

    @staticmethod
    def remove(row: PoolSettings, *, actor: User, reason: str) -> None:
        services.delete(row.pool, actor=actor, reason=reason)


@extend_schema(tags=["nodes"])
class Nodes(Edited):
    serializer_class = catalog.NodeSerializer
    filters = {"name": "name", "search": "name__icontains", "pool": "pool__name"}
    lookup_field = lookup_url_kwarg = "name"

    def rows(self, user: User) -> QuerySet[Node]:
        return visible_nodes(user).select_related("pool").order_by("name")


@extend_schema(tags=["models"])
class Models(Previewed):
    serializer_class = catalog.ModelSerializer
    filters = {
        "name": "name",
        "search": "name__icontains",
        "pool": "pool__name",
        "scope": "scope__name",
        "mode": "mode",
    }
    lookup_field = lookup_url_kwarg = "name"

    def rows(self, user: User) -> QuerySet[LanguageModel]:
        states = [state for state in Replica.State.values if state != Replica.State.GONE]
        counts = {state: Count("replicas", filter=Q(replicas__state=state, replicas__gone_at=None)) for state in states}
        newest = Sample.objects.filter(model=OuterRef("pk")).order_by("-at").values("wanted")[:1]
        rows = LanguageModel.objects.visible_to(user).select_related("pool", "scope", "slo")
        return rows.annotate(**counts, wanted=Subquery(newest)).order_by("name")


@extend_schema(tags=["profiles"])
class Profiles(Previewed):
    serializer_class = catalog.ProfileSerializer
    filters = {"model": "model__name", "name": "name", "pool": "model__pool__name", "resource": "resource", "state": "state"}

    def rows(self, user: User) -> QuerySet[Profile]:
        return Profile.objects.visible_to(user).select_related("model").order_by("model__name", "-priority", "name")


@extend_schema(tags=["measurements"])
class Measurements(Edited):
    serializer_class = catalog.MeasurementSerializer
    filters = {"model": "profile__model__name", "profile": "profile__name", "status": "status"}

    def rows(self, user: User) -> QuerySet[Measurement]:
        rows = Measurement.objects.visible_to(user).select_related("profile__model", "slo")
        return rows.order_by("-measured_at", "-id")


@extend_schema(tags=["slos"])
class Slos(Previewed):
    """Of an SLO, others than operators see those of their models and measurements."""

    serializer_class = catalog.SloSerializer
    filters = {"name": "name", "search": "name__icontains"}
    lookup_field = lookup_url_kwarg = "name"

    def rows(self, user: User) -> QuerySet[Slo]:
        rows = Slo.objects.order_by("name")
        if user.sees_everything:
            return rows
        of_models = LanguageModel.objects.visible_to(user).values("slo")
        of_measurements = Measurement.objects.visible_to(user).values("slo")
        return rows.filter(Q(pk__in=of_models) | Q(pk__in=of_measurements))


@extend_schema(tags=["prices"])
class Prices(Edited):
    """What hardware costs; those who see a pool see its prices."""

    serializer_class = catalog.PriceSerializer
    filters = {"pool": "pool__name", "resource": "resource", "currency": "currency"}

    def rows(self, user: User) -> QuerySet[Price]:
        rows = Price.objects.select_related("pool").order_by("pool__name", "resource", "-since", "-id")
        return rows if user.sees_everything else rows.filter(pool__in=visible_pools(user))
