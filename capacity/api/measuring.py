"""Measurements from result files, as files again, and outdated ones accepted."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from capacity import services
from capacity.api import bodies
from capacity.api.verbs import OPERATORS, read
from capacity.exported import measurement_document
from capacity.importing import Asked, Judged, judged, profile_named, read_uploads, store, would_store
from capacity.models import Measurement, Profile
from quotas.api.base import ApiView, require
from quotas.api.errors import bad_request
from quotas.api.fields import UtcDateTimeField, WordsField


class ImportAsked(serializers.Serializer[Any]):
    file = serializers.ListField(
        child=serializers.FileField(allow_empty_file=True),
        allow_empty=False,
        error_messages={"empty": "Choose at least one result file."},
        help_text="Result files, in any order; the field repeats.",
    )
    model = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)
    profile = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)
    slo = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=200, help_text="A name or bounds; empty: the model's."
    )
    replicas = serializers.IntegerField(required=False, min_value=1, allow_null=True, default=None)
    sweep = serializers.IntegerField(required=False, min_value=1, allow_null=True, default=None, help_text="Which one, from 1.")
    concurrency = serializers.IntegerField(required=False, min_value=1, max_value=10**12, allow_null=True, default=None)
    preview = serializers.BooleanField(default=True, help_text="false: store the sweep for the profile.")
    reason = WordsField(
        max_length=100, required=False, allow_blank=True, default="", help_text="Why; kept in the history. Needed unless preview."
    )


class MeasurementImport(ApiView):
    parser_classes = (MultiPartParser,)

    @extend_schema(
        operation_id="measurement_import",
        request={"multipart/form-data": ImportAsked},
        responses={200: OpenApiTypes.OBJECT, **bodies.refused(400, 403, 413)},
    )
    def post(self, request: Any) -> Response:
        """Read result files of load generators and judge each sweep; with `preview` false, store one for a profile.

        Nothing is stored unless all of it is."""
        require(request.user.may_operate, OPERATORS)
        asked = self.asked(request)
        profile = profile_named(Profile.objects.visible_to(request.user), asked["model"], asked["profile"])
        wish = Asked(profile=profile, **{name: asked[name] for name in ("slo", "replicas", "sweep", "concurrency")})
        found = judged(read_uploads(asked["file"]), wish)
        if asked["preview"]:
            return Response({"preview": True, **found.document(), **previewed(found)})
        stored, warnings = store(found, actor=request.user, reason=asked["reason"])
        told = {"id": stored.pk, "status": stored.status, "stale_why": stored.stale_why}
        return Response({"preview": False, **found.document(), "stored": told, "warnings": warnings})

    def asked(self, request: Any) -> dict[str, Any]:
        known = ImportAsked().fields
        for name in request.data:
            if name not in known:
                raise bad_request("There is no such field.", name)
        given = {name: request.data[name] for name in request.data if name != "file" and request.data[name] != ""}
        shape = ImportAsked(data={**given, "file": request.FILES.getlist("file")})
        shape.is_valid(raise_exception=True)
        return dict(shape.validated_data)


def previewed(found: Judged) -> dict[str, Any]:
    """What storing would say; nothing where no profile is named."""
    if found.asked.profile is None:
        return {"stored": None, "warnings": []}
    try:
        row, warnings = would_store(found)
    except ValidationError as error:
        return {"stored": None, "warnings": error.messages}
    return {"stored": {"id": None, "status": row.status, "stale_why": row.stale_why}, "warnings": warnings}


class OnMeasurement(ApiView):
    def measurement(self, request: Any, id: int) -> Measurement:
        return get_object_or_404(Measurement.objects.visible_to(request.user).select_related("profile__model", "slo"), pk=id)


class Export(OnMeasurement):
    @extend_schema(operation_id="measurement_export", responses={200: OpenApiTypes.OBJECT, **bodies.refused(404)})
    def get(self, request: Any, id: int) -> Response:
        """A measurement with all stages of its sweep, `llmgw.measurement/1`. An import reads it back."""
        found = self.measurement(request, id)
        response = Response(measurement_document(found))
        response["Content-Disposition"] = f'attachment; filename="measurement-{found.pk}.json"'
        return response


class Accepted(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    status = serializers.CharField()
    measured_at = UtcDateTimeField()
    preview = serializers.BooleanField(required=False)
    warnings = serializers.ListField(child=serializers.CharField(), required=False)


class Accepting(serializers.Serializer[Any]):
    preview = bodies.TrueOrFalseField(default=False, help_text="true: say what it would take the place of, and change nothing.")
    reason = WordsField(
        max_length=100, required=False, allow_blank=True, default="", help_text="Why; kept in the history. Needed unless preview."
    )

    def validate(self, asked: dict[str, Any]) -> dict[str, Any]:
        """A preview needs no reason, an act does."""
        if not asked["preview"] and not asked["reason"].strip():
            raise serializers.ValidationError({"reason": "This field is required."})
        return asked


class Accept(OnMeasurement):
    @extend_schema(
        operation_id="measurement_accept",
        request=Accepting,
        responses={200: Accepted, **bodies.refused(400, 403, 404)},
        examples=[bodies.REASON_EXAMPLE],
    )
    def post(self, request: Any, id: int) -> Response:
        """Put a measurement in force for the profile as it is now: it counts for removals too."""
        found = self.measurement(request, id)
        require(request.user.may_operate, OPERATORS)
        asked = read(Accepting, request)
        if asked["preview"]:
            told = services.acceptance(found)
        else:
            told = services.measurement_accept(found, actor=request.user, reason=asked["reason"])
        return Response({**Accepted(found).data, "preview": asked["preview"], "warnings": told})
