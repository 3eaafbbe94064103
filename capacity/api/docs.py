"""The API's own description and its page, both served from here and for those who are signed in."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from quotas.api.base import ApiView


class Schema(SpectacularAPIView):
    def get_exception_handler(self) -> Any:
        return ApiView.get_exception_handler(self)


def errors_everywhere(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Every call may be answered with an error, and all errors have one shape."""
    shape = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}, "description": "An error."}
    for path in result["paths"].values():
        for operation in path.values():
            operation["responses"].setdefault("default", shape)
    return result


# a person who is not signed in is sent to the login, and back
swagger = login_required(SpectacularSwaggerSplitView.as_view(url_name="api-schema"))
