"""Pools with their settings, nodes, models, profiles, measurements and SLOs as documents."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from capacity.domain.probation import read, summary
from capacity.models import LanguageModel, Measurement, Node, PoolSettings, Price, Profile, Slo
from quotas.api.fields import ExactCharField, StrictModelSerializer
from quotas.models import Pool, Scope
from quotas.validators import validate_name

COUNTED = ("ready", "unready", "starting", "draining", "wanted")


def by_name(queryset: Any, **options: Any) -> serializers.SlugRelatedField[Any]:
    return serializers.SlugRelatedField(slug_field="name", queryset=queryset, **options)


class PoolSerializer(StrictModelSerializer):
    """A pool is its name and its settings."""

    name = ExactCharField(source="pool.name", max_length=200, validators=[validate_name])
    is_example = serializers.BooleanField(source="pool.is_example", read_only=True)
    take_over_needed = serializers.CharField(
        source="pool.lease.take_over_needed",
        read_only=True,
        default="",
        help_text="Why it is only advised; else empty.",
    )

    class Meta:
        model = PoolSettings
        exclude = ("id", "pool")
        observed = frozenset({"take_over_needed"})


class NodeSerializer(StrictModelSerializer):
    """A host. `resources` are what it reports; typed ones stand in where nothing reports."""

    pool = by_name(Pool.objects.all())

    class Meta:
        model = Node
        fields = ("name", "pool", "labels", "schedulable", "resources", "foreign", "reported_at", "reason")
        observed = frozenset({"foreign", "reported_at"})


class ModelSerializer(StrictModelSerializer):
    """A model that the pool serves, and how far it may be scaled."""

    pool = by_name(Pool.objects.all())
    scope = by_name(Scope.objects.all(), required=False, allow_null=True)
    slo = by_name(Slo.objects.all(), required=False, allow_null=True)
    served_names = serializers.ListField(child=ExactCharField(max_length=200), max_length=1000, required=False)
    replicas = serializers.SerializerMethodField()
    probation = serializers.SerializerMethodField()

    class Meta:
        model = LanguageModel
        fields = (
            *("name", "pool", "scope", "mode", "priority", "min_replicas", "max_replicas", "scale_to_zero"),
            *("down_window_seconds", "drain_timeout_seconds", "scale_down_fraction", "served_names", "slo"),
            *("input_tokens", "output_tokens"),
            *(
                "woken_at",
                "last_change_at",
                "short_since",
                "removals_rest_until",
                "probation",
                "created_at",
                "replicas",
                "reason",
            ),
        )
        observed = frozenset({"woken_at", "last_change_at", "short_since", "removals_rest_until", "probation", "replicas"})

    @extend_schema_field({"type": "object", "properties": {name: {"type": ["integer", "null"]} for name in COUNTED}})
    def get_replicas(self, model: Any) -> dict[str, int | None]:
        """Five different numbers. `wanted` is null before the first pass."""
        return {name: getattr(model, name) for name in COUNTED}

    @extend_schema_field({"type": ["object", "null"], "additionalProperties": True})
    def get_probation(self, model: Any) -> dict[str, Any] | None:
        """The watch over the last removal, null where there was none."""
        watch = read(model.probation)
        return None if watch is None else summary(watch)


class ProfileSerializer(StrictModelSerializer):
    """A way to run a model: so many units of one class on each of so many hosts."""

    model = by_name(LanguageModel.objects.all())

    class Meta:
        model = Profile
        fields = (
            *("id", "model", "name", "resource", "units", "hosts", "priority", "state"),
            *("start_timeout_seconds", "selector", "engine", "engine_version", "template", "parameters"),
            *("replacing_paused", "reason"),
        )


class MeasurementSerializer(StrictModelSerializer):
    """The profile is named as a snapshot names it: by its model and its name."""

    model = ExactCharField(source="profile.model.name", max_length=200)
    profile = ExactCharField(source="profile.name", max_length=200)
    slo = by_name(Slo.objects.all(), required=False, allow_null=True)

    class Meta:
        model = Measurement
        fields = (
            *("id", "model", "profile", "max_concurrency", "tokens_per_second", "status", "stale_cause", "stale_why"),
            *("self_check", "slo", "measured_at", "evidence", "note", "reason"),
        )
        read_only_fields = ("stale_cause", "stale_why", "self_check")
        observed = frozenset({"self_check"})

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        named = attrs.pop("profile", None)
        if named is not None:
            attrs["profile"] = self._profile(named)
        return attrs

    def _profile(self, named: dict[str, Any]) -> Profile:
        stored = self.instance.profile if self.instance else None
        name = named.get("name", stored and stored.name)
        model = named.get("model", {}).get("name", stored and stored.model.name)
        found = Profile.objects.filter(model__name=model, name=name).first()
        if found is None:
            raise serializers.ValidationError({"profile": f"There is no profile “{name}” of a model “{model}”."})
        return found


class SloSerializer(StrictModelSerializer):
    """What a measured replica keeps: a percentile and a bound in ms for each latency that counts."""

    class Meta:
        model = Slo
        exclude = ("id",)


class PriceSerializer(StrictModelSerializer):
    """What one unit of a class costs an hour, from `since` on. The newest that has begun is in force."""

    pool = by_name(Pool.objects.all())

    class Meta:
        model = Price
        fields = ("id", "pool", "resource", "per_unit_hour", "currency", "since", "reason")
