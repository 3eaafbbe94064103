"""The admin of people, scopes and quotas."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest
from knox import admin as knox_admin

from . import services
from .catalogue_admin import AdminsEdit, AdminsOnly, BoundedList, CatalogueAdmin, ReadOnlyAdmin, RowInline, ServiceWrites
from .forms import CatalogueForm, EdgeForm, EdgeFormSet, NewUserForm, UserForm
from .models import CapacityQuota, Membership, Revision, Scope, ScopeEdge, User


class EdgeInline(AdminsEdit, admin.TabularInline):
    model = ScopeEdge
    fk_name = "child"
    form = EdgeForm
    formset = EdgeFormSet
    autocomplete_fields = ["parent"]
    extra = 0
    verbose_name = "parent"
    verbose_name_plural = "parents (each one's limit binds; guarantees come through the funding one, else the first)"

    def get_queryset(self, request: HttpRequest) -> QuerySet[ScopeEdge]:
        return super().get_queryset(request).select_related("child", "parent")


class QuotaInline(AdminsEdit, RowInline):
    model = CapacityQuota
    autocomplete_fields = ["pool"]
    fields = ["pool", "target", "guarantee", "limit", "weight", "lend"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[CapacityQuota]:
        return super().get_queryset(request).select_related("scope", "pool")


class ScopeForm(CatalogueForm):
    belongings = ((ScopeEdge, "child"), (CapacityQuota, "scope"))


@admin.register(Scope)
class ScopeAdmin(AdminsEdit, CatalogueAdmin):
    form = ScopeForm
    list_display = ["name", "parents_named", "quotas_said"]
    search_fields = ["name"]
    inlines = [EdgeInline, QuotaInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Scope]:
        return super().get_queryset(request).prefetch_related("parent_edges__parent", "quotas__pool")

    @admin.display(description="under")
    def parents_named(self, scope: Scope) -> str:
        return ", ".join(f"{edge.parent} (funding)" if edge.is_funding else str(edge.parent) for edge in scope.parent_edges.all())

    @admin.display(description="quotas (guarantee / limit)")
    def quotas_said(self, scope: Scope) -> str:
        rows = [f"{row.target} in {row.pool}: {said(row.guarantee)} / {said(row.limit)}" for row in scope.quotas.all()]
        return "; ".join(rows)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        if formset.model is not ScopeEdge:
            super().save_formset(request, form, formset, change)
            return
        # fills in what the log of the admin says; the service writes
        formset.save(commit=False)
        reason = form.cleaned_data.get("reason", "")
        services.scope_save(form.instance, parents=formset.parents, funding=formset.funding, actor=request.user, reason=reason)


def said(number: int | None) -> str:
    return "–" if number is None else str(number)


@admin.register(CapacityQuota)
class QuotaAdmin(AdminsEdit, CatalogueAdmin):
    list_display = ["scope", "pool", "target", "guarantee", "limit", "weight", "lend", "lowered_at"]
    list_display_links = ["scope", "target"]
    list_select_related = ["scope", "pool"]
    list_filter = ["pool", "lend"]
    search_fields = ["scope__name", "target"]
    autocomplete_fields = ["scope", "pool"]
    readonly_fields = ["lowered_at"]


@admin.register(Membership)
class MembershipAdmin(AdminsOnly, CatalogueAdmin):
    list_display = ["user", "role", "scope"]
    list_select_related = ["user", "scope"]
    list_filter = ["role"]
    search_fields = ["user__username", "scope__name"]
    autocomplete_fields = ["user", "scope"]


@admin.register(ScopeEdge)
class EdgeAdmin(ReadOnlyAdmin):
    """Edited on the page of the child."""

    list_display = ["child", "parent", "is_funding"]
    list_select_related = ["child", "parent"]
    search_fields = ["child__name", "parent__name"]


@admin.register(Revision)
class RevisionAdmin(ReadOnlyAdmin):
    list_display = ["number", "changed_at"]


class MembershipInline(AdminsOnly, RowInline):
    model = Membership
    autocomplete_fields = ["scope"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        return super().get_queryset(request).select_related("user", "scope")


class AccountForm(UserForm):
    belongings = ((Membership, "user"),)


@admin.register(User)
class UserAdmin(AdminsOnly, ServiceWrites, BoundedList, DjangoUserAdmin):
    """Groups and single permissions do not exist here: a person is an admin, an operator, or a member of scopes."""

    form = AccountForm
    add_form = NewUserForm
    actions = ["delete_selected"]
    list_display = ["username", "email", "is_superuser", "is_operator", "is_service", "is_active", "last_login"]
    list_filter = ["is_superuser", "is_operator", "is_service", "is_active"]
    search_fields = ["username", "email", "first_name", "last_name"]
    filter_horizontal = ()
    readonly_fields = ["last_login", "date_joined"]
    inlines = [MembershipInline]
    fieldsets = [
        (None, {"fields": ["username", "password", "must_change_password", "version"]}),
        ("Person", {"fields": ["first_name", "last_name", "email"]}),
        ("May", {"fields": ["is_active", "is_superuser", "is_operator", "is_service"]}),
        ("Dates", {"fields": ["last_login", "date_joined"]}),
    ]
    add_fieldsets = [
        (
            None,
            {
                "fields": [
                    *("username", "usable_password", "password1", "password2"),
                    *("must_change_password", "is_operator", "is_service"),
                ]
            },
        )
    ]

    def save_row(self, request: HttpRequest, obj: Any, reason: str) -> list[str]:
        save = services.user_save if isinstance(obj, User) else services.save
        return save(obj, actor=request.user, reason=reason)


admin.site.unregister(Group)
admin.site.unregister(knox_admin.models.AuthToken)


@admin.register(knox_admin.models.AuthToken)
class TokenAdmin(AdminsOnly, BoundedList, admin.ModelAdmin):
    """To see whose tokens there are and to revoke them; made by `token_create`, where one is shown once."""

    fields = readonly_fields = ["token_key", "user", "created", "expiry"]
    list_display = ["token_key", "user", "created", "expiry"]
    list_select_related = ["user"]
    search_fields = ["user__username", "token_key"]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
