"""The admin of people, scopes and quotas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from knox import admin as knox_admin

from . import services
from .admin_roles import AdminsOnly, ManagersEdit
from .catalogue_admin import BoundedList, CatalogueAdmin, ReadOnlyAdmin, RowInline, ServiceWrites
from .forms import CatalogueForm, EdgeForm, EdgeFormSet, NewUserForm, UserForm
from .models import CapacityQuota, Membership, Revision, Scope, ScopeEdge, User

NO_ACCOUNT = "There is no account of that name."


class EdgeInline(ManagersEdit, admin.TabularInline):
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

    def get_formset(self, request: HttpRequest, obj: Any = None, **options: Any) -> Any:
        formset = super().get_formset(request, obj, **options)
        formset.actor = request.user
        return formset


class QuotaInline(ManagersEdit, RowInline):
    model = CapacityQuota
    autocomplete_fields = ["pool"]
    fields = ["pool", "target", "guarantee", "limit", "weight", "lend"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[CapacityQuota]:
        return super().get_queryset(request).select_related("scope", "pool")


class ScopeForm(CatalogueForm):
    belongings = ((ScopeEdge, "child"), (CapacityQuota, "scope"))


@admin.register(Scope)
class ScopeAdmin(ManagersEdit, CatalogueAdmin):
    form = ScopeForm
    list_display = ["name", "parents_named", "quotas_said"]
    search_fields = ["name"]
    inlines = [EdgeInline, QuotaInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Scope]:
        # under a name of its own: rules ask for all edges
        shown = ScopeEdge.objects.visible_to(request.user).select_related("parent")
        edges = Prefetch("parent_edges", queryset=shown, to_attr="shown_edges")
        return super().get_queryset(request).prefetch_related(edges, "quotas__pool")

    @admin.display(description="under")
    def parents_named(self, scope: Scope) -> str:
        return ", ".join(f"{edge.parent} (funding)" if edge.is_funding else str(edge.parent) for edge in scope.shown_edges)

    @admin.display(description="quotas (guarantee / limit)")
    def quotas_said(self, scope: Scope) -> str:
        rows = [f"{row.target} in {row.pool}: {said(row.guarantee)} / {said(row.limit)}" for row in scope.quotas.all()]
        return "; ".join(rows)

    def save_model(self, request: HttpRequest, obj: Scope, form: Any, change: bool) -> None:
        """A new one is written together with its parents, which say who may."""
        if change:
            super().save_model(request, obj, form, change)

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
class QuotaAdmin(ManagersEdit, CatalogueAdmin):
    list_display = ["scope", "pool", "target", "guarantee", "limit", "weight", "lend", "lowered_at"]
    list_display_links = ["scope", "target"]
    list_select_related = ["scope", "pool"]
    search_fields = ["scope__name", "target"]
    autocomplete_fields = ["scope", "pool"]
    readonly_fields = ["lowered_at"]

    def get_list_filter(self, request: HttpRequest) -> Sequence[Any]:
        """To a manager the list of pools is that of his rows."""
        return ["pool", "lend"] if request.user.sees_everything else [("pool", admin.RelatedOnlyFieldListFilter), "lend"]


@admin.register(Membership)
class MembershipAdmin(ManagersEdit, CatalogueAdmin):
    """Operators do not see roles; managers see their own and those below, and give them to accounts that they know by name."""

    list_display = ["user", "role", "scope"]
    list_select_related = ["user", "scope"]
    list_filter = ["role"]
    search_fields = ["user__username", "scope__name"]
    autocomplete_fields = ["user", "scope"]

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.edits_tenancy)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and not is_ones_own(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and not is_ones_own(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        return ["user", "scope"] if obj and not request.user.is_superuser else []

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "user" and not request.user.is_superuser:
            options |= {"to_field_name": "username", "widget": forms.TextInput, "error_messages": {"invalid_choice": NO_ACCOUNT}}
        return super().formfield_for_foreignkey(db_field, request, **options)

    def get_autocomplete_fields(self, request: HttpRequest) -> Sequence[str]:
        return ["user", "scope"] if request.user.is_superuser else ["scope"]


def is_ones_own(request: HttpRequest, row: Membership | None) -> bool:
    """To somebody who is no admin."""
    return row is not None and row.user_id == request.user.pk and not request.user.is_superuser


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
