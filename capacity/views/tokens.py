"""A person's API tokens: listed, made (shown once) and revoked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_POST
from knox.models import AuthToken

from quotas.services.accounts import LONGEST_TOKEN_DAYS

MOST_TOKENS = 50
SHOWN_CHARACTERS = 8


class TokenForm(forms.Form):
    days = forms.IntegerField(min_value=1, max_value=LONGEST_TOKEN_DAYS, initial=90, label="Expires after, days")

    def __init__(self, *args: Any, held: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.held = held

    def clean(self) -> dict[str, Any]:
        if self.held >= MOST_TOKENS:
            raise forms.ValidationError(f"You hold {self.held} tokens. Revoke one first.")
        return dict(super().clean() or {})


def tokens(request: HttpRequest) -> HttpResponse:
    """The list; a POST makes one, and its answer is the only page that ever shows it."""
    mine = AuthToken.objects.filter(user=request.user)
    form = TokenForm(request.POST if request.method == "POST" else None, held=mine.count())
    secret = ""
    if request.method == "POST" and form.is_valid():
        _, secret = AuthToken.objects.create(user=request.user, expiry=timedelta(days=form.cleaned_data["days"]))
    context = {
        "tokens": mine.order_by("-created", "digest"),
        "form": form,
        "secret": secret,
        "now": timezone.now(),
        "longest_days": LONGEST_TOKEN_DAYS,
        "place": "tokens",
    }
    response = render(request, "pages/tokens.html", context, status=400 if form.errors else 200)
    add_never_cache_headers(response)
    return response


@require_POST
def token_revoke(request: HttpRequest) -> HttpResponse:
    """Only one's own, named by its hash; somebody else's is not found."""
    token = get_object_or_404(AuthToken, user=request.user, digest=request.POST.get("digest", ""))
    token.delete()
    messages.success(request, f"Token {token.token_key[:SHOWN_CHARACTERS]}… is revoked.")
    return redirect("tokens")
