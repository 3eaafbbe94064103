"""What runs, what was decided and done: to read. Names of others' scopes and models are left out of what a tenant reads."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.db import models
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers

from capacity.api.access import model_of
from capacity.models import Action, BenchRun, Decision, LanguageModel, Pass, Replica, Sample
from capacity.rows.replicas import is_one_of
from capacity.telling import Telling
from quotas.api.catalog import Records
from quotas.api.errors import bad_request
from quotas.api.fields import UtcDateTimeField
from quotas.models import User

LONGEST_RANGE = timedelta(days=1)
DEFAULT_RANGE = timedelta(hours=1)
RANGE = [
    OpenApiParameter("model", str, required=True, description="The model, or a name that it serves under."),
    OpenApiParameter("from", datetime, description="First instant; an hour before `to` when absent."),
    OpenApiParameter("to", datetime, description="Last instant; now when absent. At most 24 hours after `from`."),
]


class TellingRecords(Records):
    """Records that may name others' scopes and models."""

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "seen": Telling(self.request.user) if self.request else None}


class RecordSerializer(serializers.ModelSerializer[Any]):
    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.DateTimeField: UtcDateTimeField,
    }
    pool = serializers.CharField(source="pool.name", read_only=True)
    model = serializers.CharField(source="model.name", read_only=True)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """What names others' scopes and models is left out of what a tenant reads."""
        return super().to_representation(self.context["seen"].row(instance))


class ReplicaSerializer(RecordSerializer):
    """An engine that serves a model, as last observed."""

    profile = serializers.CharField(source="profile.name", read_only=True)
    under_test = serializers.BooleanField(read_only=True, help_text="A sweep has it to itself; no gateway is sent to it.")

    class Meta:
        model = Replica
        fields = (
            *("name", "pool", "model", "profile", "nodes", "units", "state", "since", "url", "devices", "removable"),
            *(
                "is_registered",
                "under_test",
                "drained_for",
                "drain_reason",
                "created_at",
                "ready_at",
                "gone_at",
                "seen_at",
                "message",
            ),
        )

    def to_representation(self, instance: Replica) -> dict[str, Any]:
        row = super().to_representation(instance)
        row["url"] = without_credentials(row["url"])
        return row


class DecisionSerializer(RecordSerializer):
    """What was decided of a model, while it stayed the same: from `at` until `seen_until`."""

    class Meta:
        model = Decision
        fields = (
            *("id", "pool", "model", "at", "seen_until", "outcome", "reason", "count", "is_advice"),
            *("numbers", "limited_by", "why"),
        )


class ActionSerializer(RecordSerializer):
    """One thing to do to one replica."""

    class Meta:
        model = Action
        fields = (
            *("id", "pool", "model", "decision", "op", "replica_name", "profile_name", "nodes", "reason", "for_model"),
            *("state", "created_at", "sent_at", "resolved_at", "message"),
        )


class SampleSerializer(RecordSerializer):
    """What a pass saw of a model."""

    pool = None  # type: ignore[assignment]

    class Meta:
        model = Sample
        exclude = ("id", "replicas")


class PassSerializer(RecordSerializer):
    """One pass of a pool."""

    model = None  # type: ignore[assignment]

    class Meta:
        model = Pass
        fields = ("id", "pool", "at", "seconds", "generation", "actions", "problems", "views", "error")


def without_credentials(url: str) -> str:
    """A URL without the user and password that it may carry."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


@extend_schema(tags=["replicas"])
class Replicas(TellingRecords):
    """Those that are gone are in it too, in state `gone`."""

    serializer_class = ReplicaSerializer
    filters = {
        "pool": "pool__name",
        "model": "model__name",
        "profile": "profile__name",
        "state": "state",
    }
    lookup_field = lookup_url_kwarg = "name"

    def rows(self, user: User) -> QuerySet[Replica]:
        held = is_one_of(BenchRun.objects.holding(self.now()), "replica")
        rows = Replica.objects.visible_to(user).annotate(under_test=held)
        return rows.select_related("pool", "model", "profile").order_by("name")


@extend_schema(tags=["decisions"])
class Decisions(TellingRecords):
    serializer_class = DecisionSerializer
    filters = {"pool": "pool__name", "model": "model__name", "outcome": "outcome", "reason": "reason"}

    def rows(self, user: User) -> QuerySet[Decision]:
        return Decision.objects.visible_to(user).select_related("pool", "model").order_by("-at", "-id")


@extend_schema(tags=["actions"])
class Actions(TellingRecords):
    serializer_class = ActionSerializer
    filters = {"pool": "pool__name", "model": "model__name", "op": "op", "state": "state", "reason": "reason"}

    def rows(self, user: User) -> QuerySet[Action]:
        return Action.objects.visible_to(user).select_related("pool", "model").order_by("-created_at", "-id")


@extend_schema(tags=["passes"])
class Passes(TellingRecords):
    """A pass names all that its pool has: operators and admins read it."""

    serializer_class = PassSerializer
    filters = {"pool": "pool__name"}

    def rows(self, user: User) -> QuerySet[Pass]:
        rows = Pass.objects.select_related("pool").order_by("-at", "-id")
        return rows if user.sees_everything else rows.none()


@extend_schema_view(list=extend_schema(parameters=RANGE, tags=["samples"]))
class Samples(TellingRecords):
    """Totals of one model's passes, oldest first, within at most a day."""

    serializer_class = SampleSerializer
    filter_backends = ()

    def rows(self, user: User) -> QuerySet[Sample]:
        asked = self.request.query_params
        for name in asked:
            if name not in {"model", "from", "to", "page", "page_size"}:
                raise bad_request("There is no such parameter here.", name)
        if not asked.get("model"):
            raise bad_request("Say which model: ?model=NAME.", "model")
        model = model_of(LanguageModel.objects.visible_to(user), asked["model"])
        start, end = self._range()
        return Sample.objects.filter(model=model, at__range=(start, end)).select_related("model").order_by("at", "id")

    def _range(self) -> tuple[datetime, datetime]:
        end = self._instant("to") or self.now()
        start = self._instant("from") or end - DEFAULT_RANGE
        if not timedelta(0) <= end - start <= LONGEST_RANGE:
            raise bad_request("The range is 0 to 24 hours long.", "from")
        return start, end

    def _instant(self, name: str) -> datetime | None:
        text = self.request.query_params.get(name)
        if not text:
            return None
        try:
            found = UtcDateTimeField().to_internal_value(text)
            # the first and last days of the calendar leave no room to reckon with
            found - LONGEST_RANGE, found + LONGEST_RANGE
        except (serializers.ValidationError, OverflowError):
            raise bad_request("Write a time such as 2026-11-30T12:00:00Z.", name) from None
        return found
