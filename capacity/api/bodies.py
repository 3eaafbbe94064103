"""The shapes of the verbs' requests and answers, for reading them and for the schema."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from quotas.api.fields import TrueOrFalseField, UtcDateTimeField, WordsField

POOL = OpenApiParameter("pool", str, description="The pool; may be left out where there is only one.")


class ErrorDetail(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    fields = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))
    request_id = serializers.CharField()


class ErrorBody(serializers.Serializer[Any]):
    error = ErrorDetail()


class Reason(serializers.Serializer[Any]):
    reason = WordsField(max_length=100, help_text="Why; kept in the history.")


class Cordon(serializers.Serializer[Any]):
    schedulable = TrueOrFalseField(help_text="false: nothing new is placed, and what runs is moved away.")
    preview = TrueOrFalseField(default=False, help_text="true: say what would move, and change nothing.")
    reason = WordsField(
        max_length=100, required=False, allow_blank=True, default="", help_text="Why; kept in the history. Needed unless preview."
    )

    def validate(self, asked: dict[str, Any]) -> dict[str, Any]:
        """A preview needs no reason, an act does."""
        if not asked["preview"] and not asked["reason"].strip():
            raise serializers.ValidationError({"reason": "This field is required."})
        return asked


class Previewed(serializers.Serializer[Any]):
    warnings = serializers.ListField(child=serializers.CharField(), help_text="As the PATCH would answer them.")
    changed = serializers.ListField(child=serializers.CharField(), help_text="What moves, each old → new.")
    measurements = serializers.ListField(child=serializers.IntegerField(), help_text="Measurements that become outdated.")
    replicas = serializers.ListField(child=serializers.CharField(), help_text="Replicas that would be replaced.")
    waiting = serializers.ListField(child=serializers.CharField(), help_text="The same, while replacing is paused.")


class Replacing(Reason):
    paused = TrueOrFalseField(help_text="true: outdated replicas stay until it is false again.")


class ReplacingSet(serializers.Serializer[Any]):
    model = serializers.CharField()
    paused = serializers.BooleanField()
    outdated = serializers.ListField(child=serializers.CharField(), help_text="Replicas that run what their profile was before.")


class Retire(Reason):
    preview = TrueOrFalseField(default=False, help_text="true: say who uses it, and change nothing.")


class Pusher(serializers.Serializer[Any]):
    source = serializers.CharField()
    account = serializers.CharField()
    at = UtcDateTimeField()
    in_flight = serializers.IntegerField()
    held = serializers.IntegerField()


class Retired(serializers.Serializer[Any]):
    preview = serializers.BooleanField()
    model = serializers.CharField()
    mode = serializers.CharField()
    scope = serializers.CharField(allow_blank=True)
    last_arrival_at = UtcDateTimeField(allow_null=True, help_text="null: no gateway told of one, or Redis does not answer.")
    pushers = Pusher(many=True, allow_null=True, help_text="null: Redis does not answer.")
    replicas = serializers.ListField(child=serializers.ListField(child=serializers.CharField()), help_text="Name and state.")
    kept = serializers.ListField(child=serializers.CharField(), help_text="Replicas that are stopped elsewhere.")
    sentences = serializers.ListField(child=serializers.CharField(), help_text="The same in words.")


class TakeOver(Reason):
    preview = TrueOrFalseField(default=False, help_text="true: say what would change, and change nothing.")


class TakenOver(serializers.Serializer[Any]):
    preview = serializers.BooleanField()
    pool = serializers.CharField()
    problems = serializers.ListField(child=serializers.DictField(child=serializers.CharField()), help_text="Why it is needed.")
    installation = serializers.CharField()
    installation_before = serializers.CharField(help_text="Empty: nobody had written the pool yet.")
    generation = serializers.IntegerField()
    generation_before = serializers.IntegerField()
    hosts = serializers.IntegerField(help_text="Hosts that report.")
    hosts_of_others = serializers.IntegerField(help_text="Of them, those that obey another installation.")
    running = serializers.IntegerField(help_text="Replicas at the hosts; they are kept as they are.")
    adopted = serializers.IntegerField(help_text="Of them, those that the database does not know.")
    missing = serializers.IntegerField(help_text="Replicas in the database that no host has.")
    actions = serializers.IntegerField(help_text="Open actions, which are dropped.")
    intents = serializers.IntegerField(help_text="Orders to replicas that were not seen done, which are dropped.")
    modes = serializers.DictField(child=serializers.IntegerField(), help_text="Mode → models that act by it from then on.")


class BrakeAsked(Reason):
    on = TrueOrFalseField(help_text="true: withhold everything. false: take it off and let through what is withheld.")
    until = UtcDateTimeField(
        required=False, allow_null=True, default=None, help_text="Off by itself then; null: until it is released."
    )


class Withheld(serializers.Serializer[Any]):
    op = serializers.CharField()
    model = serializers.CharField()
    replica = serializers.CharField(help_text="Empty for a start.")
    profile = serializers.CharField()
    nodes = serializers.ListField(child=serializers.CharField())
    reason = serializers.CharField()
    rule = serializers.CharField(help_text="manual, stops, starts or unready_together.")
    also = serializers.CharField(help_text="Under a pulled brake: the rule that would withhold it without; else empty.")
    why = serializers.CharField()
    since = UtcDateTimeField()


class Counted(serializers.Serializer[Any]):
    counted = serializers.IntegerField(help_text="In the last window_seconds.")
    allowed = serializers.IntegerField(help_text="So many pass; of starts at least so many.")


class Let(serializers.Serializer[Any]):
    until = UtcDateTimeField()
    stops = serializers.DictField(child=serializers.IntegerField(), help_text="Model → how many are left.")
    starts = serializers.DictField(child=serializers.IntegerField(), help_text="Model → how many are left.")
    unready = serializers.ListField(child=serializers.CharField(), help_text="Models whose unready replicas may go.")


class BrakeStands(serializers.Serializer[Any]):
    pool = serializers.CharField()
    on = serializers.BooleanField()
    until = UtcDateTimeField(allow_null=True)
    reason = serializers.CharField(help_text="Of the last act.")
    actor = serializers.CharField()
    changed_at = UtcDateTimeField(allow_null=True)
    window_seconds = serializers.IntegerField()
    stops = Counted()
    starts = Counted()
    withheld_since = UtcDateTimeField(allow_null=True)
    withheld = Withheld(many=True)
    released = Let(allow_null=True)
    version = serializers.CharField(help_text="The ETag without its quotes.")


class Woken(serializers.Serializer[Any]):
    model = serializers.CharField()
    woken_at = UtcDateTimeField()


class Moded(serializers.Serializer[Any]):
    model = serializers.CharField()
    mode = serializers.CharField()


class RestEnded(serializers.Serializer[Any]):
    model = serializers.CharField()
    removals_rest_until = UtcDateTimeField(allow_null=True)


class ModeAsked(serializers.Serializer[Any]):
    mode = serializers.ChoiceField(choices=["auto", "add_only", "advise", "paused"])
    reason = WordsField(
        max_length=100, required=False, allow_blank=True, default="", help_text="Needed where little is known of the model."
    )


class Cordoned(serializers.Serializer[Any]):
    node = serializers.CharField()
    schedulable = serializers.BooleanField(help_text="As it is now; a preview changes nothing.")
    at = UtcDateTimeField(required=False, help_text="Of a preview: when hosts and replicas were read.")
    last_pass_at = UtcDateTimeField(required=False, allow_null=True)
    sentences = serializers.ListField(child=serializers.CharField(), required=False, help_text="The numbers, for people.")
    evacuation = serializers.DictField(
        required=False, allow_null=True, help_text="What moves and stays, units freed and held, passes; null: nobody can tell."
    )
    opening = serializers.DictField(
        required=False, allow_null=True, help_text="Units that become free, and what the next pass starts there."
    )


class Endpoint(serializers.Serializer[Any]):
    replica = serializers.CharField()
    model = serializers.CharField()
    url = serializers.CharField()
    weight = serializers.IntegerField(min_value=0, help_text="Requests in flight that it was measured to serve within the SLO.")


class ServedModel(serializers.Serializer[Any]):
    name = serializers.CharField()
    served_names = serializers.ListField(child=serializers.CharField())


class Endpoints(serializers.Serializer[Any]):
    endpoints = Endpoint(many=True)
    models = ServedModel(many=True)


class LoadOfModel(serializers.Serializer[Any]):
    held = serializers.IntegerField(min_value=0, max_value=10**12, required=False, allow_null=True)
    last_arrival_at = UtcDateTimeField(required=False, allow_null=True)
    last_arrival_seconds_ago = serializers.FloatField(min_value=0, required=False, allow_null=True)


class Load(serializers.Serializer[Any]):
    source = serializers.CharField(max_length=200, help_text="The gateway instance; its push replaces its last one.")
    replicas = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=10**12), required=False, help_text="Replica → requests in flight."
    )
    models = serializers.DictField(child=LoadOfModel(), required=False, help_text="Model or one of its served names.")


class LoadTaken(serializers.Serializer[Any]):
    source = serializers.CharField(help_text="As it was read.")
    taken = serializers.DictField(child=serializers.IntegerField(), help_text="How many replicas and models of it count.")
    ignored = serializers.ListField(child=serializers.CharField(), help_text="Names that the pool does not have.")


class PlanFault(serializers.Serializer[Any]):
    path = serializers.CharField()
    message = serializers.CharField()


class InvalidDocument(ErrorDetail):
    faults = PlanFault(many=True)


class InvalidDocumentBody(serializers.Serializer[Any]):
    error = InvalidDocument()


ENDPOINTS_EXAMPLE = OpenApiExample(
    "One ready replica",
    value={
        "endpoints": [{"replica": "chat-1", "model": "chat", "url": "http://10.0.0.7:4001", "weight": 8}],
        "models": [{"name": "chat", "served_names": ["chat-lora"]}, {"name": "code", "served_names": []}],
    },
    response_only=True,
)
LOAD_EXAMPLE = OpenApiExample(
    "A push",
    value={
        "source": "gateway-1",
        "replicas": {"chat-1": 3},
        "models": {"chat": {"held": 2, "last_arrival_seconds_ago": 0.4}},
    },
    request_only=True,
)
LOAD_ANSWER_EXAMPLE = OpenApiExample(
    "All known",
    value={"source": "gateway-1", "taken": {"replicas": 1, "models": 1}, "ignored": []},
    response_only=True,
)
REASON_EXAMPLE = OpenApiExample("Why", value={"reason": "Driver update on its hosts"}, request_only=True)
RETIRE_EXAMPLE = OpenApiExample(
    "Look first", value={"reason": "Replaced by its next version", "preview": True}, request_only=True
)
TAKE_OVER_EXAMPLE = OpenApiExample("Look first", value={"reason": "Backup of 02:00 put back", "preview": True}, request_only=True)
CORDON_PREVIEW_EXAMPLE = OpenApiExample("What would move", value={"schedulable": False, "preview": True}, request_only=True)
CORDON_EXAMPLE = OpenApiExample("Cordon", value={"schedulable": False, "reason": "Fan replaced at noon"}, request_only=True)
MODE_EXAMPLE = OpenApiExample("Let it add", value={"mode": "add_only", "reason": "Watched for two weeks"}, request_only=True)
BRAKE_EXAMPLE = OpenApiExample(
    "Hold on",
    value={"on": True, "until": "2026-11-30T14:00:00Z", "reason": "Network work until two"},
    request_only=True,
)
WOKEN_EXAMPLE = OpenApiExample("Woken", value={"model": "chat", "woken_at": "2026-11-30T12:00:00Z"}, response_only=True)
SNAPSHOT_EXAMPLE = OpenApiExample(
    "A pool with one node and one model",
    value={
        "format": "llmgw.snapshot/1",
        "at": "2026-11-30T12:00:00Z",
        "nodes": [{"name": "n1", "resources": {"gpu/h100": 8}}],
        "models": [{"name": "chat"}],
        "profiles": [{"model": "chat", "name": "h100x2", "resource": "gpu/h100", "units": 2}],
        "measurements": [{"model": "chat", "profile": "h100x2", "max_concurrency": 128, "tokens_per_second": 4400}],
        "replicas": [],
    },
    request_only=True,
)
PLAN_EXAMPLE = OpenApiExample(
    "Nothing to do",
    value={"format": "llmgw.plan/1", "at": "2026-11-30T12:00:00Z", "actions": [], "decisions": [], "problems": []},
    response_only=True,
)


def refused(*codes: int) -> dict[int, OpenApiResponse]:
    """The one error shape under each of the status codes; 401 and 429 are always among them."""
    return {code: OpenApiResponse(ErrorBody) for code in (*codes, 401, 429)}
