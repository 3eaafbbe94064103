"""Engines that run already: listed, looked at, registered and forgotten."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from capacity import services
from capacity.api import bodies
from capacity.api.catalog import by_name
from capacity.models import LanguageModel, Profile, Replica
from quotas.api.base import require
from quotas.api.catalog import Catalog
from quotas.api.fields import ExactCharField, StrictModelSerializer
from quotas.models import User

LIST = {"get": "list", "post": "create"}
DETAIL = {"get": "retrieve", "delete": "destroy"}
PREVIEW = {"post": "preview"}
EXAMPLE = OpenApiExample(
    "An engine on two devices",
    value={
        "url": "http://10.0.0.7:8000/v1",
        "model": "chat",
        "profile": "h100x2",
        "nodes": ["gpu-1"],
        "devices": ["GPU-5f", "GPU-61"],
        "reason": "Ran before llmgw",
    },
    request_only=True,
)


class RegisteredSerializer(StrictModelSerializer):
    """A running engine that is seen, counted and routed to, and never stopped from here."""

    name = ExactCharField(max_length=200, required=False, help_text="Made from the model's where none is given.")
    url = ExactCharField(max_length=500)
    pool = serializers.CharField(source="pool.name", read_only=True)
    model = by_name(LanguageModel.objects.select_related("pool"))
    profile = ExactCharField(source="profile.name", max_length=200, help_text="The model's profile that says what it takes.")
    nodes = serializers.ListField(child=ExactCharField(max_length=200), max_length=1000)
    devices = serializers.ListField(child=ExactCharField(max_length=200), max_length=1000, required=False)

    class Meta:
        model = Replica
        fields = ("name", "url", "pool", "model", "profile", "nodes", "devices", "units", "state", "since", "reason")
        read_only_fields = ("units", "state", "since")
        observed = frozenset({"state", "since"})

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        name = attrs["profile"]["name"]
        attrs["profile"] = Profile.objects.filter(model=attrs["model"], name=name).first()
        if attrs["profile"] is None:
            raise serializers.ValidationError({"profile": f"{attrs['model']} has no profile “{name}”."})
        return attrs


class Looked(serializers.Serializer[Any]):
    silence = serializers.CharField(help_text="Why it does not answer; empty where it does.")
    in_flight = serializers.IntegerField(allow_null=True, help_text="null: unknown, and `unread` says why.")
    unread = serializers.CharField()
    serves = serializers.ListField(child=serializers.CharField(), allow_null=True, help_text="null: it does not say.")
    warnings = serializers.ListField(child=serializers.CharField())


@extend_schema(tags=["endpoints"])
class Registered(Catalog):
    """Those that are forgotten are replicas in state `gone`."""

    serializer_class = RegisteredSerializer
    filters = {"pool": "pool__name", "model": "model__name", "state": "state"}
    lookup_field = lookup_url_kwarg = "name"
    remove = staticmethod(services.endpoint_remove)

    def rows(self, user: User) -> QuerySet[Replica]:
        rows = Replica.objects.visible_to(user).filter(is_registered=True, gone_at=None)
        return rows.select_related("pool", "model", "profile").order_by("name")

    @extend_schema(examples=[EXAMPLE])
    def create(self, request: Any) -> Response:
        """Register one. It is looked at once; the answer has the `warnings` about it."""
        engine, reason = self.asked(request)
        warnings = services.endpoint_add(engine, actor=request.user, reason=reason)
        return self.answer(self.get_queryset().get(pk=engine.pk), 201, warnings)

    @extend_schema(operation_id="endpoints_registered_preview", responses={200: Looked, **bodies.refused(400, 403)})
    def preview(self, request: Any) -> Response:
        """Look at one and say what registering it would warn of or refuse. Writes nothing."""
        look, warnings = services.endpoint_preview(self.asked(request)[0])
        return Response({**asdict(look), "warnings": warnings})

    def asked(self, request: Any) -> tuple[Replica, str]:
        """The row as it is wished, and why. Nothing is locked: the look may take seconds."""
        require(self.may_write(request.user), self.writers)
        given = self.get_serializer(data=request.data)
        given.is_valid(raise_exception=True)
        engine = Replica()
        self.apply(engine, given)
        return engine, given.validated_data.get("reason", "")
