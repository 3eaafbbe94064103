"""Scopes with their parents, quotas, and who has which role where."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers

from quotas.models import CapacityQuota, Membership, Pool, Scope, User
from quotas.services import delete, may_edit_below, quota_delete, quota_save, save, scope_delete, scope_save

from .catalog import Catalog
from .fields import ExactCharField, SeenByName, StrictModelSerializer, not_yours

TENANCY = "Admins may do that, and managers below their own scope."


class NamedScope(ExactCharField):
    """A scope by its name."""

    def to_internal_value(self, data: Any) -> Scope:
        name, seen = super().to_internal_value(data), self.context["seen"]
        found = Scope.objects.visible_to(seen.user).filter(name=name).first()
        if found is None and not seen.everything:
            raise not_yours(self, name)
        if found is None:
            raise serializers.ValidationError(f"There is no scope “{name[:200]}”.")
        return found


@extend_schema_field({"type": "array", "maxItems": 100, "items": {"type": "string"}})
class NamedScopes(serializers.ListField):
    child = NamedScope()

    def to_representation(self, data: Any) -> list[str]:
        return list(data)


class ScopeSerializer(StrictModelSerializer):
    """An organisation, team, project or key, and its place in the graph."""

    parents = NamedScopes(required=False, max_length=100, help_text="In their order; every parent's limit binds.")
    funding = NamedScope(required=False, allow_null=True, help_text="The parent that guarantees come through; null: the first.")

    class Meta:
        model = Scope
        fields = ("name", "parents", "funding", "reason")

    def to_representation(self, instance: Scope) -> dict[str, Any]:
        """Parents that the reader may not see are left out."""
        seen = self.context["seen"]
        edges = [edge for edge in instance.parent_edges.all() if seen.scope(edge.parent.name)]
        funding = [edge.parent.name for edge in edges if edge.is_funding]
        return {
            "name": instance.name,
            "parents": [edge.parent.name for edge in edges],
            "funding": funding[0] if funding else None,
        }


class QuotaSerializer(StrictModelSerializer):
    """Whole units of a class (or replicas, for `model:NAME`) that a scope is guaranteed and limited to in a pool."""

    scope = SeenByName(queryset=Scope.objects.all())
    pool = SeenByName(queryset=Pool.objects.all())

    class Meta:
        model = CapacityQuota
        fields = ("id", "scope", "pool", "target", "guarantee", "limit", "weight", "lend", "lowered_at", "reason")


class MembershipSerializer(StrictModelSerializer):
    """A person's role in a scope and all below it."""

    user = serializers.SlugRelatedField(slug_field="username", queryset=User.objects.all())
    scope = SeenByName(queryset=Scope.objects.all())

    class Meta:
        model = Membership
        fields = ("id", "user", "scope", "role", "reason")


class TenancyCatalog(Catalog):
    """Admins write all of it; managers below their own scope, which the services see to."""

    writers = TENANCY

    def may_write(self, user: User) -> bool:
        return user.edits_tenancy

    def may_edit(self, user: User, row: Any) -> bool:
        return may_edit_below(user, row.pk if isinstance(row, Scope) else row.scope_id)


@extend_schema(tags=["scopes"])
class Scopes(TenancyCatalog):
    serializer_class = ScopeSerializer
    filters = {"name": "name", "search": "name__icontains", "parent": "parent_edges__parent__name"}
    lookup_field = lookup_url_kwarg = "name"
    remove = staticmethod(scope_delete)

    def rows(self, user: User) -> QuerySet[Scope]:
        return Scope.objects.visible_to(user).prefetch_related("parent_edges__parent").order_by("name")

    def filter_queryset(self, queryset: Any) -> Any:
        asked = self.request.query_params.get("parent")
        if asked is not None and not self.get_serializer_context()["seen"].scope(asked):
            return queryset.none()
        return super().filter_queryset(queryset)

    def store(self, row: Scope, extra: dict[str, Any], reason: str) -> list[str]:
        """A PUT without parents takes them all away; a PATCH without them leaves them; one of parents alone keeps the funding."""
        parents, funding = extra.get("parents"), extra.get("funding")
        edges = list(row.parent_edges.select_related("parent")) if row.pk else []
        if self.action != "partial_update":
            parents = parents or []
        elif parents is None and "funding" in extra:
            parents = [edge.parent for edge in edges]
        elif parents is not None and "funding" not in extra:
            funding = next((edge.parent for edge in edges if edge.is_funding and edge.parent in parents), None)
        return scope_save(row, parents=parents, funding=funding, actor=self.request.user, reason=reason)


@extend_schema(tags=["quotas"])
class Quotas(TenancyCatalog):
    serializer_class = QuotaSerializer
    filters = {"scope": "scope__name", "pool": "pool__name", "target": "target"}
    save = staticmethod(quota_save)
    remove = staticmethod(quota_delete)

    def rows(self, user: User) -> QuerySet[CapacityQuota]:
        rows = CapacityQuota.objects.visible_to(user).select_related("scope", "pool")
        return rows.order_by("scope__name", "target", "id")


@extend_schema(tags=["memberships"])
class Memberships(TenancyCatalog):
    """Admins see all roles; everybody his own, and managers those in their scope and below it."""

    serializer_class = MembershipSerializer
    filters = {"user": "user__username", "scope": "scope__name", "role": "role"}
    save = staticmethod(save)
    remove = staticmethod(delete)

    def rows(self, user: User) -> QuerySet[Membership]:
        rows = Membership.objects.visible_to(user).select_related("user", "scope")
        return rows.order_by("scope__name", "user__username", "id")
