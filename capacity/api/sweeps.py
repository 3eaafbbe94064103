"""Sweeps that llmgw runs: to list, to start and to stop."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from capacity import services
from capacity.api import bodies
from capacity.api.verbs import OPERATORS, read
from capacity.briefings.sweep_facts import document, facts_of
from capacity.measuring.tokens import LONGEST
from capacity.measuring.wish import Wish
from capacity.models import BenchRun, Profile
from quotas.api.base import ApiView, require
from quotas.api.catalog import Records
from quotas.api.fields import TrueOrFalseField, UtcDateTimeField, WordsField
from quotas.models import User

EXAMPLE = OpenApiExample(
    "Measure",
    value={"model": "chat", "profile": "h100x2", "reason": "New engine version", "where": "own", "preview": True},
    request_only=True,
)


class BenchRunSerializer(serializers.ModelSerializer[Any]):
    """A sweep that llmgw runs: what was asked, how far it is, what it gave."""

    model = serializers.CharField(source="profile.model.name", read_only=True)
    profile = serializers.CharField(source="profile.name", read_only=True)
    replica = serializers.CharField(source="replica.name", read_only=True, default=None)
    slo = serializers.CharField(source="slo.name", read_only=True, default=None)
    created_at = UtcDateTimeField(read_only=True)
    started_at = UtcDateTimeField(read_only=True)
    ended_at = UtcDateTimeField(read_only=True)
    heartbeat_at = UtcDateTimeField(read_only=True)

    class Meta:
        model = BenchRun
        fields = (
            *(
                "id",
                "model",
                "profile",
                "replica",
                "own_replica",
                "endpoint",
                "served_name",
                "slo",
                "slo_text",
                "api",
                "levels",
                "seconds",
            ),
            *("input_tokens", "output_tokens", "same_prompt", "with_token", "take_last", "state", "actor", "reason"),
            *("stop_asked", "stopped_by", "created_at", "started_at", "ended_at"),
            *("heartbeat_at", "progress", "stages", "message", "measurement"),
        )
        read_only_fields = fields


class SweepAsked(serializers.Serializer[Any]):
    model = serializers.CharField(max_length=250)
    profile = serializers.CharField(max_length=250)
    reason = WordsField(max_length=100, required=False, allow_blank=True, default="", help_text="Why. Needed unless preview.")
    slo = serializers.CharField(max_length=200, required=False, allow_blank=True, default="", help_text="A name, or bounds.")
    endpoint = serializers.CharField(max_length=500, required=False, allow_blank=True, default="")
    served_name = serializers.CharField(
        max_length=200, required=False, allow_blank=True, default="", help_text="What `endpoint` calls the model."
    )
    api = serializers.CharField(max_length=12, default="chat")
    levels = serializers.CharField(max_length=500, default="auto")
    seconds = serializers.IntegerField(default=60)
    input_tokens = serializers.IntegerField(required=False, allow_null=True, default=None)
    output_tokens = serializers.IntegerField(required=False, allow_null=True, default=None)
    same_prompt = TrueOrFalseField(
        default=False, help_text="true: every request sends the same prompt; the prefix cache is part of what is measured."
    )
    take_last = TrueOrFalseField(default=False, help_text="true: the only ready replica of the model may be taken too.")
    token = WordsField(
        max_length=LONGEST,
        write_only=True,
        required=False,
        allow_blank=True,
        default="",
        help_text="A bearer token for `endpoint`; kept until the sweep begins, a day at most, and never shown.",
    )
    where = serializers.CharField(max_length=4, default="own", help_text="own: a replica is started; take: one that runs.")
    preview = TrueOrFalseField(default=False, help_text="true: say what it would take, and change nothing.")


def run_document(run: BenchRun) -> dict[str, Any]:
    return dict(BenchRunSerializer(run).data)


@extend_schema(tags=["bench_runs"])
class BenchRuns(Records):
    serializer_class = BenchRunSerializer
    filters = {"model": "profile__model__name", "profile": "profile__name", "state": "state"}

    def rows(self, user: User) -> QuerySet[BenchRun]:
        rows = BenchRun.objects.visible_to(user).select_related("profile__model", "replica", "slo")
        return rows.order_by("-created_at", "-id")

    @extend_schema(
        operation_id="bench_run_start",
        request=SweepAsked,
        responses={201: BenchRunSerializer, 200: OpenApiTypes.OBJECT, **bodies.refused(400, 403, 404)},
        examples=[EXAMPLE],
    )
    def create(self, request: Any) -> Response:
        """Queue a sweep of a profile, or say what it would take."""
        asked = read(SweepAsked, request)
        found = Profile.objects.visible_to(request.user).select_related("model__slo", "model__pool__settings")
        profile = get_object_or_404(found, model__name=asked.pop("model"), name=asked.pop("profile"))
        require(request.user.may_operate, OPERATORS)
        reason, preview = asked.pop("reason"), asked.pop("preview")
        wish = Wish(**asked)
        if preview:
            run = services.bench_prepare(profile, wish, actor=request.user, reason=reason or "a preview", now=self.now())
            return Response(document(facts_of(run, self.now())))
        run = services.bench_start(profile, wish, actor=request.user, reason=reason, now=self.now())
        return self.answer(run, 201)


class BenchRunStop(ApiView):
    @extend_schema(
        operation_id="bench_run_stop",
        request=None,
        responses={200: BenchRunSerializer, **bodies.refused(400, 403, 404)},
    )
    def post(self, request: Any, id: int) -> Response:
        """Stop it: a queued one is over at once, one under way within two seconds. Its replica is given back."""
        run = get_object_or_404(BenchRun.objects.visible_to(request.user), pk=id)
        require(request.user.may_operate, OPERATORS)
        return Response(run_document(services.bench_stop(run, actor=request.user, now=self.now())))
