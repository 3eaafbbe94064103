"""Forms that check by the services' own rules, ask why, and refuse to save over somebody else's edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied, ValidationError
from django.forms.fields import InvalidJSONInput
from django.forms.models import construct_instance
from django.utils import timezone

from . import services
from .models import Scope, ScopeEdge, User
from .services.rows import LONGEST_REASON


class PlainJson(forms.JSONField):
    """JSON as it is typed; what is nested too deep is an error of the field."""

    def to_python(self, value: Any) -> Any:
        try:
            return super().to_python(value)
        except RecursionError:
            raise ValidationError("This is nested too deep.") from None

    def bound_data(self, data: Any, initial: Any) -> Any:
        try:
            return super().bound_data(data, initial)
        except RecursionError:
            return InvalidJSONInput(data)


class RowForm(forms.ModelForm):
    """Its row is checked by the services, which show each refusal at its field."""

    warnings: Sequence[str] = ()
    actor: Any = None
    """Who edits, set by the page: rules ask for it."""

    def _post_clean(self) -> None:
        """In place of Django's, which knows the row alone and shows what compares fields at none of them."""
        self.instance._history_user = self.actor
        self.instance = construct_instance(self, self.instance, self._meta.fields, self._meta.exclude)
        if self.errors:
            return
        try:
            self.warnings = services.check(self.instance)
        except ValidationError as error:
            self.show(error)

    def show(self, error: ValidationError) -> None:
        for field, errors in error.error_dict.items():
            self.add_error(field if field in self.fields else None, list(errors))


class VersionedForm(RowForm):
    """Carries the version that it was loaded with; refused when the row has moved on since."""

    version = forms.CharField(required=False, widget=forms.HiddenInput)
    belongings: Sequence[services.Belonging] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.current_version = services.version_of(self.instance, self.belongings)
        self.initial["version"] = self.current_version

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.instance.pk is not None and cleaned.get("version") != self.current_version:
            self.add_error(None, services.Conflict(f"{self._last_edit()} Load the page again and repeat your edit."))
        return cleaned

    def _last_edit(self) -> str:
        """Who came first, where the history of the row itself knows."""
        last = self.instance.history.first() if hasattr(self.instance, "history") else None
        if last is None or last.history_user is None:
            return "This was changed while you were editing it."
        at = timezone.localtime(last.history_date)
        return f"This was changed while you were editing it, last by {last.history_user} at {at:%Y-%m-%d %H:%M:%S}."


class CatalogueForm(VersionedForm):
    """Asks why; the answer stands in the history."""

    reason = forms.CharField(
        label="Why?", required=False, max_length=LONGEST_REASON, help_text="Stands in the history beside your name."
    )

    def clean(self) -> dict[str, Any]:
        # some rules want a reason: they read it where the history does
        self.instance._change_reason = self.cleaned_data.get("reason") or None
        return super().clean()


class RowFormSet(forms.BaseInlineFormSet):
    """Deletions obey the services' rules as saves do."""

    def clean(self) -> None:
        super().clean()
        for form in self.deleted_forms if self.can_delete else []:
            if form.instance.pk is None:
                continue
            services.sign(form.instance, form.actor)
            try:
                services.check_delete(form.instance)
            except ValidationError as error:
                raise ValidationError(error.messages) from error


class EdgeForm(forms.ModelForm):
    """A row of the list of parents. The rules are the list's: a mark that moves from one parent to another is on both rows
    while each is looked at alone."""

    class Meta:
        model = ScopeEdge
        fields = ("parent", "is_funding")

    def _post_clean(self) -> None:
        self.instance = construct_instance(self, self.instance, self._meta.fields, self._meta.exclude)


class EdgeFormSet(forms.BaseInlineFormSet):
    """The parents of a scope, as a whole: their order is the rows'."""

    parents: Sequence[Scope] = ()
    funding: Scope | None = None
    actor: Any = None

    def clean(self) -> None:
        if any(self.errors):
            return
        rows = [form.cleaned_data for form in self.forms if form not in self.deleted_forms and form.cleaned_data.get("parent")]
        marked = [row["parent"] for row in rows if row.get("is_funding")]
        if len(marked) > 1:
            raise ValidationError(f"A scope has one funding parent: {' and '.join(map(str, marked))} are marked.")
        self.parents = [row["parent"] for row in rows]
        self.funding = marked[0] if marked else None
        self._check()

    def validate_unique(self) -> None:
        """`clean` says which parent is named twice."""

    def _check(self) -> None:
        try:
            services.check_place(self.instance, self.parents, self.funding, self.actor)
        except ValidationError as error:
            raise ValidationError(error.messages) from error
        except PermissionDenied as error:
            raise ValidationError(str(error)) from error


class UserForm(VersionedForm, UserChangeForm):
    class Meta:
        model = User
        fields = "__all__"


class NewUserForm(AdminUserCreationForm, RowForm):
    class Meta:
        model = User
        fields = ("username", "is_service", "is_operator", "must_change_password")

    def clean(self) -> dict[str, Any]:
        # the row is checked before the password is set
        self.instance.set_unusable_password()
        return super().clean() or self.cleaned_data


def sentences(error: ValidationError) -> list[str]:
    """All that a refusal says, each with its field where there is one."""
    if not hasattr(error, "error_dict"):
        return list(error.messages)
    found: Mapping[str, list[str]] = error.message_dict
    return [text if field == NON_FIELD_ERRORS else f"{field}: {text}" for field, texts in found.items() for text in texts]
