"""Lists and rows: read by those who may see them, written through services by those who may, never over an unseen edit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.response import Response
from rest_framework.viewsets import ViewSetMixin

from quotas.models import User
from quotas.seen import Seen
from quotas.services import exclusive

from .base import ApiView, require
from .errors import bad_request, not_found
from .etags import etag, require_match
from .pages import NamedFilters, Pages

LIST = {"get": "list"}
DETAIL = {"get": "retrieve"}
EDITED_LIST = {"get": "list", "post": "create"}
EDITED_DETAIL = {"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"}
IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    required=True,
    description="The ETag of what you have read: 428 without it, 412 with the current body where someone else was first.",
)


class Records(ViewSetMixin, ApiView, GenericAPIView):  # type: ignore[type-arg]
    """Rows to read. A subclass has `rows(user)`: in a unique order, and none that the user may not see."""

    pagination_class = Pages
    filter_backends = (NamedFilters,)
    filters: dict[str, str] = {}
    lookup_field = "pk"
    lookup_url_kwarg: str | None = "id"

    def rows(self, user: User) -> QuerySet[Any]:
        raise NotImplementedError

    def get_queryset(self) -> QuerySet[Any]:
        # the schema is drawn without anybody asking
        return self.rows(self.request.user) if self.request else self.serializer_class.Meta.model.objects.none()

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "seen": Seen(self.request.user) if self.request else None}

    def found(self) -> Any:
        """The row of the path; 404 for one that is foreign or is not there."""
        value = self.kwargs[self.lookup_url_kwarg]
        if "\0" in str(value):
            raise not_found()
        return get_object_or_404(self.get_queryset(), **{self.lookup_field: value})

    def list(self, request: Any) -> Response:
        """A page of those that you may see. A page past the end is the last one."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def retrieve(self, request: Any, **path: Any) -> Response:
        """One of them, with its ETag; 404 where there is none or it is not yours to see."""
        return self.answer(self.found())

    def answer(self, row: Any, status: int = 200, warnings: list[str] | None = None) -> Response:
        """The row with its ETag. The answer to a write has the services' warnings in it too."""
        data = dict(self.get_serializer(row).data)
        tag = self.tag(data)
        if warnings is not None:
            data["warnings"] = warnings
        return Response(data, status=status, headers={"ETag": tag})

    def tag(self, data: dict[str, Any]) -> str:
        return etag(data, getattr(self.serializer_class.Meta, "observed", frozenset()))


class Catalog(Records):
    """Rows to edit. A subclass has `save` and `remove`, the services that write them, and `writers`, a sentence."""

    save: Callable[..., list[str]]
    remove: Callable[..., None]
    writers = "Operators may do that."

    def may_write(self, user: User) -> bool:
        return bool(user.may_operate)

    def may_edit(self, user: User, row: Any) -> bool:
        """This one, as it is stored."""
        return self.may_write(user)

    def store(self, row: Any, extra: dict[str, Any], reason: str) -> list[str]:
        """Write the row by its service; `extra` are the fields that are no columns of it. Returns warnings."""
        return self.save(row, actor=self.request.user, reason=reason)

    def create(self, request: Any) -> Response:
        """Make one. What is left out takes its default. The answer has the `warnings` about it."""
        require(self.may_write(request.user), self.writers)
        given = self.get_serializer(data=request.data)
        given.is_valid(raise_exception=True)
        row = self.serializer_class.Meta.model()
        with exclusive():
            warnings = self.store(row, self.apply(row, given), given.validated_data.get("reason", ""))
            return self.answer(self.get_queryset().get(pk=row.pk), 201, warnings)

    @extend_schema(parameters=[IF_MATCH])
    def update(self, request: Any, **path: Any) -> Response:
        """Replace it: what is left out takes its default, what is read only may be sent back and says nothing."""
        return self.edit(request, partial=False)

    @extend_schema(parameters=[IF_MATCH])
    def partial_update(self, request: Any, **path: Any) -> Response:
        """Change the fields that are sent and no others; null empties one."""
        return self.edit(request, partial=True)

    def edit(self, request: Any, *, partial: bool) -> Response:
        with exclusive():
            row = self.matched(request)
            given = self.get_serializer(row, data=request.data, partial=partial)
            given.is_valid(raise_exception=True)
            extra = self.apply(row, given)
            warnings = self.store(row, extra, given.validated_data.get("reason", ""))
            return self.answer(self.get_queryset().get(pk=row.pk), 200, warnings)

    @extend_schema(parameters=[IF_MATCH, OpenApiParameter("reason", str, description="Why; kept in the history.")])
    def destroy(self, request: Any, **path: Any) -> Response:
        """Remove it; refused, with what to do, while others need it."""
        reason = request.query_params.get("reason", "")
        if "\0" in reason:
            raise bad_request("A reason has no NUL character.", "reason")
        with exclusive():
            self.remove(self.matched(request), actor=request.user, reason=reason)
        return Response(status=204)

    def matched(self, request: Any) -> Any:
        """The row of the path, under the lock of all edits, where If-Match names it as it is."""
        row = self.found()
        require(self.may_edit(request.user, row), self.writers)
        data = dict(self.get_serializer(row).data)
        require_match(request.headers.get("If-Match"), self.tag(data), data)
        return row

    def apply(self, row: Any, given: Any) -> dict[str, Any]:
        """Set what was given; what a PUT or a new row leaves out takes its default. Returns the fields that are no columns."""
        data = {name: value for name, value in given.validated_data.items() if name != "reason"}
        columns = {field.name: field for field in row._meta.concrete_fields}
        if not given.partial:
            for field in given.fields.values():
                if field.source in columns and not field.read_only and field.source not in data:
                    setattr(row, field.source, columns[field.source].get_default())
        for name in data.keys() & columns.keys():
            setattr(row, name, data[name])
        return {name: value for name, value in data.items() if name not in columns}
