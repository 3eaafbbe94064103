"""What it takes for a model to serve a demand: the question in the query or in the body, the answer as llmgw.target/1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.response import Response

from capacity.api import bodies
from capacity.api.access import model_of
from capacity.api.verbs import OnModel
from capacity.briefings.target import target_for
from capacity.domain.sizing import WrongQuestion, question_of
from capacity.domain.sizing.question import DEFAULTS, KEYS
from capacity.models import LanguageModel
from quotas.api.base import document
from quotas.api.errors import bad_request

TOLD = {
    "tokens_per_second": "Demand: output tokens a second.",
    "requests_per_second": "Demand: requests a second; needs output_tokens.",
    "in_flight": "Demand: requests in flight at once.",
    "users": "Demand: users; needs requests_per_user_day and output_tokens.",
    "scope": "Whose limits bind what is added; without it the model's own scope.",
    "headroom": "20% or 0.2.",
    "room": "now, reclaim or total.",
    "stale": "exclude, use or derate:0.8.",
}
WORDS = [
    OpenApiParameter(key, str, many=key == "profile", description=TOLD.get(key, ""), default=DEFAULTS.get(key)) for key in KEYS
]
ASKED = OpenApiExample(
    "Requests a second", value={"requests_per_second": 12, "output_tokens": 600, "headroom": "20%"}, request_only=True
)
PEOPLE = OpenApiExample(
    "People", value={"users": 4000, "requests_per_user_day": 20, "output_tokens": 600, "spare": 1}, request_only=True
)
ANSWERED = OpenApiExample(
    "It fits",
    value={
        "format": "llmgw.target/1",
        "model": "chat",
        "asked": {"tokens_per_second": 8000},
        "verdict": "fits",
        "served": 8800,
        "share": 1.0,
        "plan": [{"profile": "h100x2", "have": 0, "add": 2, "units": 4, "nodes": ["n1", "n2"], "measured": "current"}],
        "binding": [],
        "missing": [],
        "holds_until": 89,
    },
    response_only=True,
)


class Target(OnModel):
    verb = "target"
    throttle_scope = "plan"

    @extend_schema(
        operation_id="model_target",
        parameters=WORDS,
        responses={200: OpenApiTypes.OBJECT, **bodies.refused(400, 404)},
        examples=[ANSWERED],
    )
    def get(self, request: Any, name: str) -> Any:
        """What it takes for the model to serve a demand, in the room and the limits there are. Changes nothing."""
        if (found := self.whole_row(request, name)) is not None:
            return found
        query = request.query_params
        for key in query:
            if key != "profile" and len(query.getlist(key)) > 1:
                raise bad_request(f"{key} is given {len(query.getlist(key))} times: give it once.", key)
        return self.answer(request, name, {key: query.getlist(key) if key == "profile" else query[key] for key in query})

    @extend_schema(
        operation_id="model_target_asked",
        request=OpenApiTypes.OBJECT,
        responses={200: OpenApiTypes.OBJECT, **bodies.refused(400, 404)},
        examples=[ASKED, PEOPLE, ANSWERED],
    )
    def post(self, request: Any, name: str) -> Response:
        """The same, with the question as a JSON object. Changes nothing."""
        return self.answer(request, name, document(request))

    def answer(self, request: Any, name: str, words: Mapping[str, Any]) -> Response:
        model = model_of(LanguageModel.objects.visible_to(request.user), name)
        try:
            return Response(target_for(request.user, model, question_of(words), self.now()).document)
        except WrongQuestion as wrong:
            raise bad_request(wrong.sentence, wrong.key) from None
