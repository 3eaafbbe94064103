"""What every view of the API does alike: who asks, how often, what is read, how errors look."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from .errors import Problem, bad_request, handle, not_found
from .parsers import BoundedJSONParser
from .throttles import WriteThrottle


class PasswordChosen(BasePermission):
    """A token opens nothing while its owner still has the password that somebody else chose for him."""

    message = "Choose a password of your own first: sign in on the site, which asks for one."

    def has_permission(self, request: Any, view: Any) -> bool:
        return not request.user.must_choose_password


class ApiView(APIView):
    """Signed in by token or session; JSON in, JSON out, never kept by a cache."""

    permission_classes = (IsAuthenticated, PasswordChosen)
    parser_classes = (BoundedJSONParser,)
    throttle_classes = (WriteThrottle,)
    throttle_scope = "write"
    metadata_class = None

    def get_exception_handler(self) -> Any:
        return handle

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer.setdefault("Cache-Control", "no-store")
        return answer

    def now(self) -> datetime:
        return timezone.now()


class NoSuchPath(ApiView):
    """Any address below the API that is none: 404 in the one shape, for everyone who is signed in."""

    schema = None

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.path.endswith("/"):
            raise Problem(404, "not_found", "There is nothing here. Addresses of the API have no slash at their end.")
        raise not_found()

    def get(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        raise not_found()

    post = put = patch = delete = get


def require(allowed: bool, message: str) -> None:
    """403 with a sentence unless `allowed`."""
    if not allowed:
        raise PermissionDenied(message)


def document(request: Any) -> dict[str, Any]:
    """The body, which must be an object."""
    if not isinstance(request.data, dict):
        raise bad_request("The body is not a JSON object.")
    return request.data


def only(data: dict[str, Any], *known: str) -> dict[str, Any]:
    """The body, where it has no other keys than `known`."""
    for name in data:
        if name not in known:
            raise bad_request("There is no such field.", name)
    return data
