"""What passes wrote: to look at. A back-off may be lifted."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from quotas.admin_roles import NobodyEdits, OperatorsEdit
from quotas.catalogue_admin import BoundedList, ReadOnlyAdmin, ServiceWrites

from ..models import Action, Backoff, BenchRun, Brake, Decision, Lease, Pass, Replica, Rollup, Sample


@admin.register(Replica)
class ReplicaAdmin(ReadOnlyAdmin):
    list_display = ["name", "model", "profile_name", "state", "since", "units", "on", "gone_at"]
    list_select_related = ["model", "profile"]
    list_filter = ["state", "pool"]
    search_fields = ["name", "model__name"]

    @admin.display(description="profile")
    def profile_name(self, replica: Replica) -> str:
        return replica.profile.name

    @admin.display(description="on")
    def on(self, replica: Replica) -> str:
        return ", ".join(map(str, replica.nodes))


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    list_display = ["at", "model", "outcome", "reason", "count", "is_advice", "seen_until"]
    list_select_related = ["model"]
    list_filter = ["outcome", "is_advice", "pool"]
    search_fields = ["model__name", "reason"]


@admin.register(Action)
class ActionAdmin(ReadOnlyAdmin):
    list_display = ["created_at", "op", "replica_name", "model", "reason", "state", "resolved_at", "message"]
    list_select_related = ["model"]
    list_filter = ["state", "op", "pool"]
    search_fields = ["replica_name", "model__name", "reason"]


@admin.register(BenchRun)
class BenchRunAdmin(ReadOnlyAdmin):
    """Asked for and stopped on its page, by the API or `manage.py bench`; who did stands in it."""

    list_display = ["created_at", "profile", "state", "actor", "reason", "stopped_by", "started_at", "ended_at"]
    list_select_related = ["profile__model"]
    list_filter = ["state", "profile__model__pool"]
    search_fields = ["profile__model__name", "profile__name", "actor", "reason", "stopped_by"]


@admin.register(Pass)
class PassAdmin(ReadOnlyAdmin):
    list_display = ["at", "pool", "seconds", "generation", "actions", "error"]
    list_select_related = ["pool"]
    list_filter = ["pool"]
    ordering = ["-at", "-id"]


@admin.register(Sample)
class SampleAdmin(ReadOnlyAdmin):
    list_display = ["at", "model", "demand_high", "capacity_ready", "ready", "unready", "starting", "draining", "wanted"]
    list_select_related = ["model"]
    search_fields = ["model__name"]
    ordering = ["-at", "-id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Sample]:
        return super().get_queryset(request).defer("replicas")


@admin.register(Rollup)
class RollupAdmin(ReadOnlyAdmin):
    list_display = ["at", "model", "samples"]
    list_select_related = ["model"]
    search_fields = ["model__name"]
    ordering = ["-at", "-id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Rollup]:
        return super().get_queryset(request).defer("replicas")


@admin.register(Lease)
class LeaseAdmin(ReadOnlyAdmin):
    list_display = ["pool", "holder", "until", "generation", "installation", "take_over_needed"]
    list_select_related = ["pool"]


@admin.register(Brake)
class BrakeAdmin(ReadOnlyAdmin):
    """Pulled and released on its page, by the API or `manage.py brake`."""

    list_display = ["pool", "is_on", "until", "withheld_since", "actor", "reason"]
    list_select_related = ["pool"]


@admin.register(Backoff)
class BackoffAdmin(NobodyEdits, ServiceWrites, BoundedList, admin.ModelAdmin):
    """Deleting one lets the profile start on the node at once."""

    list_display = ["profile", "node", "failures", "until", "message"]
    list_select_related = ["profile__model", "node"]
    search_fields = ["profile__model__name", "profile__name", "node__name"]
    actions = ["delete_selected"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return OperatorsEdit.has_delete_permission(self, request, obj)
