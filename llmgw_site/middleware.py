"""A request id on every answer and log line; who was refused what; no page with a NUL in its name; a printed first password is
changed first."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

import structlog
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

GIVEN_ID = re.compile(r"[A-Za-z0-9-]{8,64}")

REFUSED = frozenset({403, 404})
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
log = structlog.get_logger(__name__)

Handler = Callable[[HttpRequest], HttpResponse]


class RequestIdMiddleware:
    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "")
        request_id = given if GIVEN_ID.fullmatch(given) else uuid.uuid4().hex[:16]
        request.request_id = request_id  # type: ignore[attr-defined]
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            response = self.get_response(request)
        response["X-Request-Id"] = request_id
        return response


class DeniedMiddleware:
    """One line of the log for each act that somebody signed in was refused: who, what, and on which object (its address)."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # a token's owner is known only now
        if response.status_code in REFUSED and request.method not in SAFE and request.user.is_authenticated:
            seen = {"user": request.user.get_username(), "act": request.method, "object": request.path[:500]}
            if named := getattr(request, "named", ""):
                seen["named"] = named[:200]
            log.warning("denied", status=response.status_code, **seen)
        return response


class NulMiddleware:
    """Nothing of ours has a NUL in its name, and a database may refuse to be asked for it: no such page. (The API answers for
    itself, in its own shape.)"""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith("/api/"):
            asked = (value for _, values in request.GET.lists() for value in values)
            if "\0" in request.path or any("\0" in text for text in (*request.GET, *asked)):
                raise Http404("There is no such page.")
        return self.get_response(request)


class ChangePasswordMiddleware:
    """Someone who still has the password that was printed for him sees only the form that changes it."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = request.user
        if user.is_authenticated and user.must_choose_password:
            allowed = {reverse("password_change"), reverse("password_change_done"), reverse("logout")}
            if request.path not in allowed:
                return redirect("password_change")
        return self.get_response(request)
