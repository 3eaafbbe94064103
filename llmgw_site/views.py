"""Sign-in pages that need more than Django's own."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import views as auth
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseServerError
from django.template import loader

from quotas.api.errors import of_suspicion


class PasswordChange(auth.PasswordChangeView):
    """Lifts the duty to change a printed password."""

    def form_valid(self, form: Any) -> HttpResponse:
        form.user.must_change_password = False
        return super().form_valid(form)


def broken(request: HttpRequest) -> HttpResponse:
    """The page of a fault, with the request's id. It asks no store for anything: that may be what is broken."""
    return HttpResponseServerError(loader.get_template("500.html").render({"request": request}))


def refused(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page of a request that cannot be read: too large, too many files, or not what a browser sends."""
    context = {"request": request, "sentence": of_suspicion(exception)}
    return HttpResponseBadRequest(loader.get_template("400.html").render(context))
