"""What the API does, beside keeping rows: gateways' verbs, plan and snapshot, wake, pause and cordon."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from capacity import services
from capacity.api import bodies
from capacity.api.access import asked_pool, may_wake, model_of, serves_pools, visible_nodes, visible_pools
from capacity.api.endpoints import endpoints_document
from capacity.api.load import known_only
from capacity.api.rows import Models, Nodes, Pools
from capacity.briefings.evacuate import document as document_of_cordon
from capacity.briefings.evacuate import facts_of
from capacity.briefings.retirement import sentences_of, use_of
from capacity.domain import InvalidSnapshot, loads, plan_json
from capacity.models import LanguageModel, Lease
from capacity.snapshot import live_document
from capacity.sources.push_document import InvalidPush, parse_push
from capacity.sources.push_store import PushStore
from capacity.store import redis_client
from capacity.wiring import deps
from quotas.api.base import ApiView, document, only, require
from quotas.api.catalog import EDITED_DETAIL, Catalog
from quotas.api.errors import Fields, Problem, conflict, not_found, unavailable
from quotas.api.parsers import RawJSONParser

OPERATORS = "Operators may do that."


def by_path(faults: Any) -> Fields:
    fields: Fields = {}
    for fault in faults:
        fields.setdefault(fault.path, []).append(fault.message)
    return fields


def faults_problem(faults: Any, what: str) -> Problem:
    """422 for a document that was read and is not valid: each fault with its path, in order."""
    rows = [{"path": fault.path, "message": fault.message} for fault in faults]
    return Problem(422, "invalid_document", f"The {what} is not valid.", fields=by_path(faults), extra={"faults": rows})


class Endpoints(ApiView):
    @extend_schema(
        operation_id="endpoints",
        parameters=[bodies.POOL],
        responses={200: bodies.Endpoints, **bodies.refused(400, 404)},
        examples=[bodies.ENDPOINTS_EXAMPLE],
    )
    def get(self, request: Any) -> Response:
        """Where a gateway may send: ready replicas with their measured concurrency as weight.

        Draining ones, and those that a sweep has to itself, are absent."""
        models = LanguageModel.objects.filter(pool=asked_pool(request))
        if not serves_pools(request.user):
            models = models.visible_to(request.user)
        return Response(endpoints_document(models, self.now()))


class Load(ApiView):
    throttle_scope = "load"

    @extend_schema(
        operation_id="load",
        parameters=[bodies.POOL],
        request=bodies.Load,
        responses={200: bodies.LoadTaken, **bodies.refused(400, 403, 404, 409, 413, 415, 503)},
        examples=[bodies.LOAD_EXAMPLE, bodies.LOAD_ANSWER_EXAMPLE],
    )
    def post(self, request: Any) -> Response:
        """A gateway pushes its requests in flight, those it holds and the last arrivals; each push replaces its source's last."""
        require(serves_pools(request.user), "Loads are pushed with the token of a service account or of an operator.")
        pool = asked_pool(request)
        try:
            push = parse_push(request.data, self.now())
        except InvalidPush as error:
            raise Problem(400, "invalid", "The push is not valid; see the fields.", fields=by_path(error.faults)) from None
        known, store = known_only(pool, replace(push, account=request.user.username)), PushStore(redis_client())
        if store.taken_by(pool.name, push.source, push.at) not in {None, "", request.user.username}:
            raise conflict(f"Another account pushes as “{push.source}”: give this gateway a source of its own.")
        if not store.push(pool.name, known.push, ignored=len(known.ignored)):
            raise unavailable("Redis cannot be reached at the moment; the push was not taken.")
        return Response({"source": push.source, "taken": known.taken, "ignored": known.ignored})


class Plan(ApiView):
    throttle_scope = "plan"
    parser_classes = (RawJSONParser,)

    @extend_schema(
        operation_id="plan",
        request=OpenApiTypes.OBJECT,
        responses={200: OpenApiTypes.OBJECT, 422: bodies.InvalidDocumentBody, **bodies.refused(413, 415)},
        examples=[bodies.SNAPSHOT_EXAMPLE, bodies.PLAN_EXAMPLE],
    )
    def post(self, request: Any) -> Response:
        """The plan (llmgw.plan/1) for a snapshot (llmgw.snapshot/1) of your own. It reads nothing else and changes nothing."""
        try:
            return Response(plan_json(loads(request.data or b"")))
        except InvalidSnapshot as error:
            raise faults_problem(error.faults, "snapshot") from None


class Snapshot(ApiView):
    @extend_schema(
        operation_id="snapshot",
        parameters=[bodies.POOL],
        responses={200: OpenApiTypes.OBJECT, **bodies.refused(400, 403, 404)},
    )
    def get(self, request: Any) -> Response:
        """The live fleet's snapshot (llmgw.snapshot/1) of a pool, as the next pass would see it."""
        pool = asked_pool(request)
        if not visible_pools(request.user).filter(pk=pool.pk).exists():
            raise not_found()
        require(request.user.may_operate, "A snapshot names every scope of its pool: operators may read it.")
        return Response(live_document(pool.name, self.now()))


class NamedLikeAVerb:
    """A path that ends in a verb may be the whole name of a row: `a/wake`. Only POST acts, all else is for that row."""

    verb: str
    rows: type[Catalog]

    def http_method_not_allowed(self, request: Any, name: str) -> Any:
        found = self.whole_row(request, name)
        return super().http_method_not_allowed(request, name=name) if found is None else found  # type: ignore[misc]

    def whole_row(self, request: Any, name: str) -> Any | None:
        """The answer of the row that is itself named like the path; None where there is none."""
        whole = f"{name}/{self.verb}"
        detail = self.rows(request=request)
        if "\0" in whole or not detail.rows(request.user).filter(**{detail.lookup_field: whole}).exists():
            return None
        return self.rows.as_view(EDITED_DETAIL)(request._request, name=whole)


class OnModel(NamedLikeAVerb, ApiView):
    """An act on the model of the path."""

    rows = Models

    def model(self, request: Any, name: str) -> LanguageModel:
        models = LanguageModel.objects.all()
        return model_of(models if serves_pools(request.user) else models.visible_to(request.user), name)


class Wake(OnModel):
    verb = "wake"
    throttle_scope = "wake"

    @extend_schema(
        operation_id="model_wake",
        request=None,
        responses={202: bodies.Woken, **bodies.refused(400, 403, 404)},
        examples=[bodies.WOKEN_EXAMPLE],
    )
    def post(self, request: Any, name: str) -> Response:
        """Ask for a first replica of a model at zero, by its name or one that it serves under. The next pass decides."""
        model = self.model(request, name)
        require(may_wake(request.user, model), "Operators, gateways and managers of its scope may wake a model.")
        services.model_wake(model, actor=request.user, now=self.now())
        return Response(bodies.Woken({"model": model.name, "woken_at": model.woken_at}).data, status=202)


class Pause(OnModel):
    verb = "pause"

    @extend_schema(
        operation_id="model_pause",
        request=bodies.Reason,
        responses={200: bodies.Moded, **bodies.refused(400, 403, 404)},
        examples=[bodies.REASON_EXAMPLE],
    )
    def post(self, request: Any, name: str) -> Response:
        """Leave a model alone: nothing of it is started or taken back until its mode is edited."""
        model = self.model(request, name)
        require(request.user.may_operate, OPERATORS)
        services.model_mode(model, LanguageModel.Mode.PAUSED, actor=request.user, reason=read(bodies.Reason, request)["reason"])
        return Response({"model": model.name, "mode": model.mode})


class Retire(OnModel):
    verb = "retire"

    @extend_schema(
        operation_id="model_retire",
        request=bodies.Retire,
        responses={200: bodies.Retired, **bodies.refused(400, 403, 404)},
        examples=[bodies.RETIRE_EXAMPLE],
    )
    def post(self, request: Any, name: str) -> Response:
        """Switch a model off (minimum and maximum 0, scale to zero), and say who used it.

        The passes drain what runs, the last one once nobody has asked for it for `idle_seconds`."""
        model = self.model(request, name)
        require(request.user.may_operate, OPERATORS)
        asked, use = read(bodies.Retire, request), use_of(model, self.now())
        if not asked["preview"]:
            services.model_retire(model, actor=request.user, reason=asked["reason"])
        told = {**asdict(use), "preview": asked["preview"], "sentences": sentences_of(use, self.now())}
        return Response(bodies.Retired(told).data)


class Cordon(NamedLikeAVerb, ApiView):
    verb = "cordon"
    rows = Nodes

    @extend_schema(
        operation_id="node_cordon",
        request=bodies.Cordon,
        responses={200: bodies.Cordoned, **bodies.refused(400, 403, 404)},
        examples=[bodies.CORDON_EXAMPLE, bodies.CORDON_PREVIEW_EXAMPLE],
    )
    def post(self, request: Any, name: str) -> Response:
        """Take a node out of service (what runs there is moved away), or give it back; or say what would move."""
        if "\0" in name:
            raise not_found()
        node = get_object_or_404(visible_nodes(request.user), name=name)
        require(request.user.may_operate, OPERATORS)
        asked = read(bodies.Cordon, request)
        if asked["preview"]:
            return Response(document_of_cordon(facts_of(node, asked["schedulable"], self.now())))
        services.node_cordon(node, asked["schedulable"], actor=request.user, reason=asked["reason"])
        return Response({"node": node.name, "schedulable": node.schedulable})


class TakeOver(NamedLikeAVerb, ApiView):
    verb = "take-over"
    rows = Pools

    @extend_schema(
        operation_id="pool_take_over",
        request=bodies.TakeOver,
        responses={200: bodies.TakenOver, **bodies.refused(400, 403, 404)},
        examples=[bodies.TAKE_OVER_EXAMPLE],
    )
    def post(self, request: Any, name: str) -> Response:
        """Make a pool this installation's after a restore, or on a copy: its models act in their own modes from then on."""
        if "\0" in name:
            raise not_found()
        pool = get_object_or_404(visible_pools(request.user), name=name)
        require(request.user.may_operate, OPERATORS)
        lease, asked = Lease.objects.select_related("pool").get(pool=pool), read(bodies.TakeOver, request)
        driver, mine = deps().driver, deps().installation
        if asked["preview"]:
            found = services.take_over_preview(lease, driver.observe(pool.name), mine)
        else:
            found = services.take_over(
                lease, driver, installation=mine, actor=request.user, reason=asked["reason"], now=self.now()
            )
        return Response({"preview": asked["preview"], **asdict(found)})


def read(shape: type[Any], request: Any) -> dict[str, Any]:
    """The checked body of a verb; a key that the shape does not have is refused."""
    given = shape(data=only(document(request), *shape().fields))
    given.is_valid(raise_exception=True)
    return dict(given.validated_data)
