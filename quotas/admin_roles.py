"""Who sees and edits a kind of rows in the admin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from . import services
from .models import Scope


class OperatorsEdit:
    """Operators and admins see and edit."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.may_operate)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.may_operate)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.may_operate)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.may_operate)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.may_operate)


class AdminsEdit(OperatorsEdit):
    """Operators see, admins edit."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)


class AdminsOnly(AdminsEdit):
    """Operators do not even see."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)


class ManagersEdit(AdminsEdit):
    """Operators see, admins edit; managers see what their role shows them, and edit what belongs to scopes below their own.

    Of an inline `obj` is the scope on whose page it stands."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.may_operate or request.user.edits_tenancy)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_edit(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_edit(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_edit(request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).visible_to(request.user)  # type: ignore[misc,no-any-return]

    def get_field_queryset(self, db: Any, db_field: Any, request: HttpRequest) -> QuerySet[Any] | None:
        """Nothing can be chosen that the person does not see."""
        rows = super().get_field_queryset(db, db_field, request)  # type: ignore[misc]
        rows = db_field.remote_field.model._default_manager.all() if rows is None else rows
        found: QuerySet[Any] = rows.visible_to(request.user) if hasattr(rows, "visible_to") else rows
        return found

    def get_autocomplete_fields(self, request: HttpRequest) -> Sequence[str]:
        """Pools are looked up on a page that is for operators."""
        fields = super().get_autocomplete_fields(request)  # type: ignore[misc]
        return [name for name in fields if name in {"scope", "parent"} or request.user.sees_everything]


def may_edit(request: HttpRequest, obj: Any) -> bool:
    """Something at all, where there is no `obj`."""
    if obj is None or obj.pk is None:
        return bool(request.user.edits_tenancy)
    return services.may_edit_below(request.user, obj.pk if isinstance(obj, Scope) else obj.scope_id)


class NobodyEdits(OperatorsEdit):
    """Written by the product alone."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
