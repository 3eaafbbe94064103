"""How far a model may act: what is known before a switch, the switch itself."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from capacity import services
from capacity.api import bodies
from capacity.api.verbs import OPERATORS, OnModel, read
from capacity.briefings.mode_facts import NEXT, document, facts_of
from capacity.models import LanguageModel
from capacity.outdated import outdated_of
from quotas.api.base import require
from quotas.api.errors import bad_request

MODE = OpenApiParameter("mode", str, description="The mode to look at; without it the next freer one.")


class EndRest(OnModel):
    verb = "end_rest"

    @extend_schema(
        operation_id="model_end_rest",
        request=bodies.Reason,
        responses={200: bodies.RestEnded, **bodies.refused(400, 403, 404)},
        examples=[bodies.REASON_EXAMPLE],
    )
    def post(self, request: Any, name: str) -> Response:
        """Let removals go on before the rest that followed a failed removal is over."""
        model = self.model(request, name)
        require(request.user.may_operate, OPERATORS)
        services.end_rest(model, actor=request.user, reason=read(bodies.Reason, request)["reason"], now=self.now())
        return Response({"model": model.name, "removals_rest_until": None})


class Replacing(OnModel):
    verb = "replacing"

    @extend_schema(
        operation_id="model_replacing",
        request=bodies.Replacing,
        responses={200: bodies.ReplacingSet, **bodies.refused(400, 403, 404)},
    )
    def post(self, request: Any, name: str) -> Response:
        """Pause the replacing of a model's outdated replicas, or let it go on."""
        model = self.model(request, name)
        require(request.user.may_operate, OPERATORS)
        asked = read(bodies.Replacing, request)
        services.model_replacing(model, asked["paused"], actor=request.user, reason=asked["reason"])
        found = outdated_of(model).replicas
        return Response({"model": model.name, "paused": asked["paused"], "outdated": [replica.name for replica in found]})


class Mode(OnModel):
    verb = "mode"

    @extend_schema(
        operation_id="model_mode_facts",
        parameters=[MODE],
        responses={200: OpenApiTypes.OBJECT, **bodies.refused(400, 404)},
    )
    def get(self, request: Any, name: str) -> Any:
        """The scorecard of the last 14 days, the evidence in use, and for operators the next pass in another mode."""
        if (found := self.whole_row(request, name)) is not None:
            return found
        model = self.model(request, name)
        mode = request.query_params.get("mode") or NEXT[model.mode]
        if mode not in LanguageModel.Mode.values:
            raise bad_request(f"A mode is one of {', '.join(LanguageModel.Mode.values)}.", "mode")
        return Response(document(facts_of(model, mode, self.now()), with_preview=request.user.may_operate))

    @extend_schema(
        operation_id="model_mode",
        request=bodies.ModeAsked,
        responses={200: bodies.Moded, **bodies.refused(400, 403, 404)},
        examples=[bodies.MODE_EXAMPLE],
    )
    def post(self, request: Any, name: str) -> Response:
        """Switch a model to auto, add_only, advise or paused."""
        model = self.model(request, name)
        require(request.user.may_operate, OPERATORS)
        asked = read(bodies.ModeAsked, request)
        services.model_mode(model, asked["mode"], actor=request.user, reason=asked["reason"])
        return Response({"model": model.name, "mode": model.mode})
