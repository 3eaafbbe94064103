"""What an edit of a model or an SLO would make outdated: the same as of a profile, at addresses that names with slashes share."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from capacity.api import bodies, catalog
from capacity.api.rows import Models, Slos
from capacity.api.verbs import NamedLikeAVerb
from quotas.api.base import ApiView

ANSWERS = {200: bodies.Previewed, **bodies.refused(400, 403, 404)}


class Preview(NamedLikeAVerb, ApiView):
    verb = "preview"
    # the rows' own view counts the call
    throttle_classes = ()

    def previewed(self, request: Any, name: str) -> Any:
        return self.rows.as_view({"post": "preview"})(request._request, name=name)


class ModelPreview(Preview):
    rows = Models

    @extend_schema(operation_id="model_preview", request=catalog.ModelSerializer(partial=True), responses=ANSWERS)
    def post(self, request: Any, name: str) -> Response:
        """What a PATCH of these fields would warn of and make outdated; nothing is changed."""
        return self.previewed(request, name)


class SloPreview(Preview):
    rows = Slos

    @extend_schema(operation_id="slo_preview", request=catalog.SloSerializer(partial=True), responses=ANSWERS)
    def post(self, request: Any, name: str) -> Response:
        """What a PATCH of these bounds would warn of and make outdated; nothing is changed."""
        return self.previewed(request, name)
