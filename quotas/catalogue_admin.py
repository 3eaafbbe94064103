"""How rows are listed and edited in the admin: all writes go through the services, as one edit with one reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.actions import delete_selected
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from simple_history.admin import SimpleHistoryAdmin

from . import services
from .admin_roles import NobodyEdits
from .forms import CatalogueForm, PlainJson, RowForm, RowFormSet, sentences
from .models import Scope
from .services.rows import LONGEST_REASON

AT_MOST_NAMED = 50
"""Rows of a deletion that its page names."""

JSON_AS_TYPED = {models.JSONField: {"form_class": PlainJson, "widget": forms.Textarea(attrs={"rows": 3, "cols": 60})}}


class ServiceWrites:
    """Saves, deletes and bulk deletes by the services. A refusal at the last moment is a message; nothing is written."""

    delete_confirmation_template = "admin/delete_rows.html"
    delete_selected_confirmation_template = "admin/delete_rows.html"

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method != "POST":
            return super().changeform_view(request, *args, **kwargs)
        try:
            # from the check of the version to the last row nobody else's edit comes between
            with services.exclusive():
                return super().changeform_view(request, *args, **kwargs)
        except ValidationError as refusal:
            return self._refused(request, refusal)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().delete_view(request, *args, **kwargs)
        except ValidationError as refusal:
            return self._refused(request, refusal)

    def _refused(self, request: HttpRequest, refusal: ValidationError) -> HttpResponse:
        self._say(request, refusal)
        return HttpResponseRedirect(request.get_full_path())

    def _say(self, request: HttpRequest, refusal: ValidationError) -> None:
        for sentence in sentences(refusal):
            self.message_user(request, sentence, messages.ERROR)

    @admin.action(permissions=["delete"], description="Delete selected %(verbose_name_plural)s")
    def delete_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """All of them or none."""
        try:
            with services.exclusive():
                return delete_selected(self, request, queryset)
        except ValidationError as refusal:
            self._say(request, refusal)
            return None

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        self._warn(request, form.warnings, self.save_row(request, obj, form.cleaned_data.get("reason", "")))

    def save_row(self, request: HttpRequest, obj: Any, reason: str) -> list[str]:
        """Warnings."""
        return services.save(obj, actor=request.user, reason=reason)

    def _warn(self, request: HttpRequest, *warnings: Iterable[str]) -> None:
        """What the form's check and the save say, each once: a check completes the row, so that the save may say less."""
        for warning in dict.fromkeys(chain(*warnings)):
            self.message_user(request, warning, messages.WARNING)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        reason = form.cleaned_data.get("reason", "")
        rows = formset.save(commit=False)
        for row in formset.deleted_objects:
            services.delete(row, actor=request.user, reason=reason)
        said = [self.save_row(request, row, reason) for row in rows]
        self._warn(request, *(changed.warnings for changed in formset.forms if changed.instance in rows), *said)
        formset.save_m2m()

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        services.delete(obj, actor=request.user, reason=_typed_reason(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            services.delete(row, actor=request.user, reason=_typed_reason(request))

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """What goes along is counted, not listed (a model has 100,000 samples); refusals are said before anything is asked."""
        rows = list(objs)
        named = [text for row in rows[:AT_MOST_NAMED] for text in self.told_before_a_deletion(row)]
        return named, _counts(rows), set(), _refusals(rows, request.user)

    def told_before_a_deletion(self, row: Any) -> list[str]:
        """What the page lists of a row that is to go."""
        return [str(row)]


def _number(typed: str) -> str:
    """An id out of an address, which may say anything."""
    if not (typed.isascii() and typed.isdecimal() and len(typed) < 19):
        raise Http404
    return typed


def _typed_reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()[:LONGEST_REASON]


def _counts(rows: Sequence[Any]) -> dict[str, int]:
    """Plural name → rows that go, those that hang on the deleted ones directly among them."""
    if not rows:
        return {}
    counts = {str(rows[0]._meta.verbose_name_plural): len(rows)}
    for relation in rows[0]._meta.related_objects:
        if getattr(relation, "on_delete", None) is not models.CASCADE:
            continue
        found = relation.related_model._base_manager.filter(**{f"{relation.field.name}__in": rows}).count()
        if found:
            counts[str(relation.related_model._meta.verbose_name_plural)] = found
    return counts


def _refusals(rows: Iterable[Any], actor: Any) -> list[str]:
    refusals: list[str] = []
    for row in rows:
        services.sign(row, actor)
        try:
            services.check_delete(row)
        except ValidationError as error:
            refusals += sentences(error)
    return refusals


class BoundedList:
    """No count of the whole table, and pages of one size."""

    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 200


class CatalogueAdmin(ServiceWrites, BoundedList, SimpleHistoryAdmin):
    """A kind of rows that people write down: with its history, a reason and a version."""

    form = CatalogueForm
    formfield_overrides = JSON_AS_TYPED
    actions = ["delete_selected"]
    closing_fields: Sequence[str] = ("reason", "version")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        form = super().get_form(request, obj, change, **options)
        form.actor = request.user
        return form

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        self._require_seen(request, object_id)
        return super().history_view(request, _number(object_id), extra_context)

    def history_form_view(self, request: HttpRequest, object_id: str, version_id: str, extra_context: Any = None) -> HttpResponse:
        self._require_seen(request, object_id)
        if not self.get_history_queryset(request, self.model.history, "id", _number(object_id)).filter(pk=_number(version_id)):
            raise Http404
        return super().history_form_view(request, _number(object_id), _number(version_id), extra_context)

    def _require_seen(self, request: HttpRequest, object_id: str) -> None:
        """Rows that are gone have a history for those who see everything."""
        if not request.user.sees_everything and not self.get_queryset(request).filter(pk=_number(object_id)).exists():
            raise Http404

    def get_history_queryset(self, request: HttpRequest, history_manager: Any, pk_name: str, object_id: Any) -> QuerySet[Any]:
        """What a row was while it belonged to a scope that the person does not see is left out."""
        rows = super().get_history_queryset(request, history_manager, pk_name, object_id)
        if request.user.sees_everything or not any(field.name == "scope" for field in self.model._meta.concrete_fields):
            return rows
        return rows.filter(scope_id__in=Scope.objects.visible_to(request.user).values("pk"))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Sequence[Any]:
        typed = [name for name in self.get_fields(request, obj) if name not in self.closing_fields]
        may_edit = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        return [(None, {"fields": [*typed, *(self.closing_fields if may_edit else ())]})]


class ReadOnlyAdmin(NobodyEdits, BoundedList, admin.ModelAdmin):
    """A kind of rows that passes write: to look at."""

    actions = None


class RowInline(admin.TabularInline):
    """Rows edited on the page of the row that they belong to."""

    form = RowForm
    formset = RowFormSet
    formfield_overrides = JSON_AS_TYPED
    extra = 0
    show_change_link = True

    def get_formset(self, request: HttpRequest, obj: Any = None, **options: Any) -> Any:
        formset = super().get_formset(request, obj, **options)
        formset.form.actor = request.user
        return formset
