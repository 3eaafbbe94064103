"""The admin for admins, operators and managers; signing in happens on the site's own page, where guesses are counted."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.apps import AdminConfig
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache


class Site(admin.AdminSite):
    site_header = site_title = "llmgw"
    index_title = "Everything that is written down"

    def has_permission(self, request: HttpRequest) -> bool:
        return bool(getattr(request.user, "may_operate", False) or getattr(request.user, "edits_tenancy", False))

    @method_decorator(never_cache)
    @method_decorator(login_not_required)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        wanted = request.GET.get("next") or reverse("admin:index")
        if self.has_permission(request):
            return redirect("admin:index")
        if request.user.is_authenticated:
            raise PermissionDenied("The admin is for operators, admins and managers of scopes.")
        return redirect(f"{reverse('login')}?{urlencode({'next': wanted})}")

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return redirect("password_change")

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        super().logout(request, extra_context)
        return redirect("login")


class SiteConfig(AdminConfig):
    default_site = "quotas.admin_site.Site"
