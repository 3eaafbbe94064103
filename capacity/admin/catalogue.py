"""What operators write down: pools, nodes, models, profiles, measurements, SLOs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from quotas.admin_roles import OperatorsEdit
from quotas.catalogue_admin import CatalogueAdmin, RowInline
from quotas.models import Pool

from ..briefings.retirement import arrival, gateways, use_of
from ..forms import ConfirmedForm, ModelWithProfilesForm, ProfileOfModelForm, ProfileWithMeasurementsForm
from ..models import LanguageModel, Measurement, Node, PoolSettings, Price, Profile, Slo
from ..services.outdating import outdating_without

CONFIRMED = ("confirmed", "reason", "version")


@admin.register(Pool)
class PoolAdmin(OperatorsEdit, CatalogueAdmin):
    """A new pool gets settings and a lease with it."""

    list_display = ["name", "is_example"]
    search_fields = ["name"]


@admin.register(PoolSettings)
class PoolSettingsAdmin(OperatorsEdit, CatalogueAdmin):
    """One row a pool: made and deleted with it."""

    list_display = [
        *("pool", "scale_down_fraction", "down_window_seconds", "idle_seconds", "wake_seconds"),
        *("max_step_up", "reclaim", "stale_measurements"),
    ]
    list_select_related = ["pool"]
    search_fields = ["pool__name"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        return ["pool"] if obj else []

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Slo)
class SloAdmin(OperatorsEdit, CatalogueAdmin):
    form = ConfirmedForm
    closing_fields = CONFIRMED
    list_display = ["name", "ttft", "tpot", "e2e", "max_error_share"]
    search_fields = ["name"]

    def told_before_a_deletion(self, row: Slo) -> list[str]:
        """With the measurements that were made for it."""
        sentence = outdating_without(row).sentence
        return [str(row), *([f"{row}: {sentence}"] if sentence else [])]

    @admin.display(description="TTFT")
    def ttft(self, slo: Slo) -> str:
        return bound(slo.ttft_percentile, slo.ttft_ms)

    @admin.display(description="TPOT")
    def tpot(self, slo: Slo) -> str:
        return bound(slo.tpot_percentile, slo.tpot_ms)

    @admin.display(description="end to end")
    def e2e(self, slo: Slo) -> str:
        return bound(slo.e2e_percentile, slo.e2e_ms)


def bound(percentile: int | None, milliseconds: int | None) -> str:
    return "–" if percentile is None or milliseconds is None else f"p{percentile} ≤ {milliseconds} ms"


@admin.register(Node)
class NodeAdmin(OperatorsEdit, CatalogueAdmin):
    list_display = ["name", "pool", "schedulable", "offers", "reported_at"]
    list_select_related = ["pool"]
    list_filter = ["pool", "schedulable"]
    search_fields = ["name"]
    autocomplete_fields = ["pool"]

    @admin.display(description="offers")
    def offers(self, node: Node) -> str:
        return ", ".join(f"{units} × {name}" for name, units in sorted(node.resources.items()))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """What a host reports is not typed."""
        return ["resources", "foreign", "reported_at"] if obj is not None and obj.reported_at else []


class ProfileInline(OperatorsEdit, RowInline):
    model = Profile
    form = ProfileOfModelForm
    fields = ["name", "resource", "units", "hosts", "priority", "state", "template"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Profile]:
        return super().get_queryset(request).select_related("model")


@admin.register(LanguageModel)
class LanguageModelAdmin(OperatorsEdit, CatalogueAdmin):
    form = ModelWithProfilesForm
    closing_fields = CONFIRMED
    list_display = ["name", "pool", "scope", "mode", "priority", "min_replicas", "max_replicas", "scale_to_zero", "slo"]
    list_select_related = ["pool", "scope", "slo"]
    list_filter = ["pool", "mode", "scale_to_zero"]
    search_fields = ["name", "scope__name"]
    autocomplete_fields = ["pool", "scope", "slo"]
    inlines = [ProfileInline]

    def told_before_a_deletion(self, row: LanguageModel) -> list[str]:
        """With who still asks for it."""
        now = timezone.now()
        use = use_of(row, now)
        return [str(row), *(f"{row}: {text}" for text in (arrival(use, now), *gateways(use, now)))]


class MeasurementInline(OperatorsEdit, RowInline):
    """To add one: what was measured is history."""

    model = Measurement
    fields = ["max_concurrency", "tokens_per_second", "status", "slo", "measured_at", "note"]
    readonly_fields = ["status"]
    autocomplete_fields = ["slo"]
    verbose_name_plural = "measurements (the newest is in use; a typed one counts as assumed)"

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Measurement]:
        return super().get_queryset(request).select_related("profile__model", "slo")


@admin.register(Profile)
class ProfileAdmin(OperatorsEdit, CatalogueAdmin):
    form = ProfileWithMeasurementsForm
    closing_fields = CONFIRMED
    list_display = ["name", "model", "resource", "units", "hosts", "priority", "state", "template"]
    list_select_related = ["model"]
    list_filter = ["state", "model__pool"]
    search_fields = ["name", "model__name", "resource"]
    autocomplete_fields = ["model"]
    inlines = [MeasurementInline]


@admin.register(Measurement)
class MeasurementAdmin(OperatorsEdit, CatalogueAdmin):
    list_display = ["profile", "max_concurrency", "tokens_per_second", "status", "kind", "slo", "measured_at"]
    list_select_related = ["profile__model", "slo"]
    list_filter = ["status", "profile__model__pool"]
    search_fields = ["profile__name", "profile__model__name", "note"]
    autocomplete_fields = ["profile", "slo"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """Evidence comes from sweeps; when and of what something was measured does not change."""
        return ["profile", "measured_at", "slo", "kind", "stale_why", "evidence"] if obj else []

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        return [] if obj else ["evidence", "status", "kind"]


@admin.register(Price)
class PriceAdmin(OperatorsEdit, CatalogueAdmin):
    """The newest that has begun is in force; an older one stays as what was paid then."""

    list_display = ["resource", "pool", "per_unit_hour", "currency", "since"]
    list_select_related = ["pool"]
    list_filter = ["pool", "currency"]
    search_fields = ["resource", "pool__name"]
    autocomplete_fields = ["pool"]
