"""One shape for every error of the API.

`{"error": {"code", "message", "fields": {path: [sentences]}, "request_id"}}`, for whatever went wrong. `error.current` stands
beside them where an edit was stale (412).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import (
    NON_FIELD_ERRORS,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import InterfaceError, OperationalError
from django.db.models import ProtectedError
from django.http import Http404
from redis.exceptions import RedisError
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler

from quotas.services import Conflict

log = logging.getLogger(__name__)

Fields = dict[str, list[str]]
INVALID = "The request is not valid; see the fields."


class Problem(exceptions.APIException):
    """An error with its own status, code, sentence and fields. `extra` is put beside them."""

    def __init__(
        self, status_code: int, code: str, message: str, *, fields: Fields | None = None, extra: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, code)
        self.status_code = status_code
        self.fields = fields or {}
        self.extra = extra or {}
        self.headers: dict[str, str] = {}


def bad_request(message: str, field: str | None = None) -> Problem:
    """400 for one field or parameter, or for the whole request."""
    fields = {field: [message]} if field else {}
    return Problem(400, "invalid", INVALID if field else message, fields=fields)


def conflict(message: str) -> Problem:
    return Problem(409, "conflict", message)


def unavailable(message: str) -> Problem:
    """503: a store that the answer needs cannot be reached. Asking again later may help."""
    return Problem(503, "unavailable", message)


def not_found() -> Problem:
    return Problem(404, "not_found", "There is nothing here, or it is not yours to see.")


def handle(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's exception handler: any exception to an answer of the one shape. What nobody expected is logged and says nothing."""
    problem = _problem(error)
    response = exception_handler(problem, context)
    assert response is not None  # a Problem is an APIException, which DRF always answers
    response.data = body(problem, context["request"])
    for name, value in problem.headers.items():
        response[name] = value
    return response


def body(problem: Problem, request: Any) -> dict[str, Any]:
    return {
        "error": {
            "code": problem.get_codes(),
            "message": str(problem.detail),
            "fields": problem.fields,
            "request_id": getattr(request, "request_id", ""),
            **problem.extra,
        }
    }


def _problem(error: Exception) -> Problem:
    match error:
        case Problem():
            return error
        case exceptions.ValidationError():
            return Problem(400, "invalid", INVALID, fields=flatten(error.detail))
        case DjangoValidationError():
            return of_validation(error)
        case Http404():
            return not_found()
        case RequestDataTooBig() | TooManyFilesSent() | TooManyFieldsSent():
            return Problem(413, "too_large", of_suspicion(error))
        case SuspiciousOperation():
            return bad_request(of_suspicion(error))
        case PermissionDenied():
            return Problem(403, "permission_denied", str(error) or "You may not do that.")
        case ProtectedError():
            return conflict("Other rows still refer to this one; remove those first.")
        case exceptions.APIException():
            return _of_framework(error)
        case OperationalError() | InterfaceError():
            log.warning("The database cannot be reached: %s", type(error).__name__)
            return unavailable("The database cannot be reached at the moment; nothing was changed.")
        case RedisError():
            log.warning("Redis cannot be reached: %s", type(error).__name__)
            return unavailable("Redis cannot be reached at the moment; nothing was changed.")
    log.error("An API request failed.", exc_info=error)
    return Problem(500, "server_error", "Something went wrong here; the request id finds it in the logs.")


def _of_framework(error: exceptions.APIException) -> Problem:
    code = error.get_codes()
    problem = Problem(error.status_code, code if isinstance(code, str) else "invalid", str(error.detail))
    # 401 names the way to sign in, 429 says when to come back
    if header := getattr(error, "auth_header", None):
        problem.headers["WWW-Authenticate"] = header
    if isinstance(error, exceptions.Throttled) and error.wait is not None:
        problem.headers["Retry-After"] = str(int(error.wait) + 1)
    return problem


def of_suspicion(error: Exception) -> str:
    """One sentence for a request that the framework does not take."""
    match error:
        case RequestDataTooBig():
            return "The request is larger than what is read at once; send fewer or smaller files."
        case TooManyFilesSent():
            return f"At most {settings.DATA_UPLOAD_MAX_NUMBER_FILES} files are read at once."
        case TooManyFieldsSent():
            return f"At most {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS} fields are read at once."
    return "The request is not one that can be read."


def of_validation(error: DjangoValidationError) -> Problem:
    """A service's refusal: 409 where someone else's edit came first, else 400 at its fields."""
    if isinstance(error, Conflict):
        return conflict(" ".join(error.messages))
    if not hasattr(error, "error_dict"):
        return Problem(400, "invalid", " ".join(error.messages))
    errors = dict(error.message_dict)
    general = errors.pop(NON_FIELD_ERRORS, [])
    return Problem(400, "invalid", " ".join(general) or INVALID, fields=errors)


def _below(path: str, key: Any) -> str:
    if key == "non_field_errors":
        return path
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else str(key)


def flatten(detail: Any, path: str = "") -> Fields:
    """DRF's nested errors as one map: `labels.zone`, `parents[0]` → sentences."""
    if isinstance(detail, Mapping):
        found: Fields = {}
        for key, value in detail.items():
            found.update(flatten(value, _below(path, key)))
        return found
    if not isinstance(detail, list):
        return {path: [str(detail)]}
    found = {path: [str(item) for item in detail if not isinstance(item, (dict, list))]}
    for index, item in enumerate(detail):
        if isinstance(item, (dict, list)) and item:
            found.update(flatten(item, f"{path}[{index}]"))
    return {key: sentences for key, sentences in found.items() if sentences}
