"""Lists: one page at a time, in an order that never ties, filtered by named parameters only."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from rest_framework.filters import BaseFilterBackend
from rest_framework.pagination import PageNumberPagination
from rest_framework.response import Response

from .errors import bad_request

PAGING = frozenset({"page", "page_size"})


class Pages(PageNumberPagination):
    """`{"count", "page", "pages", "next", "previous", "results"}`. A page past the end is the last one."""

    page_size = 50
    max_page_size = 200
    page_size_query_param = "page_size"

    def paginate_queryset(self, queryset: Any, request: Any, view: Any = None) -> list[Any]:
        self.request = request
        # a size of 0 or of nonsense is the default, a large one the largest
        self.page = Paginator(queryset, self.get_page_size(request) or self.page_size).get_page(request.query_params.get("page"))
        return list(self.page)

    def get_paginated_response(self, data: Any) -> Response:
        return Response(
            {
                "count": self.page.paginator.count,
                "page": self.page.number,
                "pages": self.page.paginator.num_pages,
                "next": self.get_next_link(),
                "previous": self.get_previous_link(),
                "results": data,
            }
        )

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        whole = {"type": "integer", "minimum": 0}
        link = {"type": ["string", "null"], "format": "uri"}
        properties = {
            "count": whole,
            "page": whole,
            "pages": whole,
            "next": link,
            "previous": link,
            "results": schema,
        }
        return {"type": "object", "required": list(properties), "properties": properties}


class NamedFilters(BaseFilterBackend):
    """Filters of a view's `filters` (parameter → lookup). A parameter that the view does not know is a 400, not ignored."""

    def filter_queryset(self, request: Any, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        lookups = {}
        for name, value in request.query_params.items():
            if name in PAGING:
                continue
            if name not in view.filters:
                known = ", ".join(sorted({*view.filters, *PAGING}))
                raise bad_request(f"There is no such parameter here; there are {known}.", name)
            if "\0" in value or len(value) > 500:
                raise bad_request("This is no value to look for.", name)
            lookups[view.filters[name]] = value
        return queryset.filter(**lookups)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        text = {"in": "query", "required": False, "schema": {"type": "string"}}
        return [{"name": name, "description": f"Only those of this {name}.", **text} for name in getattr(view, "filters", {})]
