"""Fields and a serializer that are stricter than DRF's own: text stays as it was sent, times are UTC, nothing is overlooked."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from django.db import models
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from .errors import not_found

UNKNOWN = "There is no such field."
READ_ONLY = "This is read only."
NO_BOOLEAN = "Write true or false, without quotes."
NO_TEXT = "Write text, in quotes."


class UtcDateTimeField(serializers.DateTimeField):
    """Written with a Z whatever the zone of the installation."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(default_timezone=UTC, **kwargs)


class TrueOrFalseField(serializers.BooleanField):
    """JSON's own true and false: "yes", "off" and 1 are mistakes, and the worse where they pass for an act."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise ValidationError(NO_BOOLEAN)
        return data


class WordsField(serializers.CharField):
    """Text, and no number that looks like one. Spaces at the ends are cut off."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise ValidationError(NO_TEXT)
        return str(super().to_internal_value(data))


class ExactCharField(WordsField):
    """Spaces at the ends are refused by the rules for names, not cut off."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **kwargs)


class PlainDecimalField(serializers.DecimalField):
    """Exact, in a string without idle zeros; read from a string or a number."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(normalize_output=True, **kwargs)


class SeenByName(serializers.SlugRelatedField[Any]):
    """A row by its name, of those that the caller sees. Of others he learns nothing: 404, whether they exist or not."""

    def __init__(self, **options: Any) -> None:
        super().__init__(slug_field="name", **options)

    def get_queryset(self) -> Any:
        rows, user = super().get_queryset(), _user(self)
        return rows if user is None else rows.visible_to(user)

    def fail(self, key: str, **facts: Any) -> Any:
        user = _user(self)
        if key == "does_not_exist" and user is not None and not user.sees_everything:
            raise not_yours(self, str(facts.get("value")))
        super().fail(key, **facts)


def not_yours(field: serializers.Field[Any, Any, Any, Any], name: str) -> Exception:
    """404 for a body that names what its sender does not see; the log says what he named."""
    field.context["request"]._request.named = name
    return not_found()


def _user(field: serializers.Field[Any, Any, Any, Any]) -> Any:
    """Who asks; None where the schema is drawn."""
    seen = field.context.get("seen")
    return seen.user if seen else None


class StrictModelSerializer(serializers.ModelSerializer[Any]):
    """A row of the catalogue. `Meta.observed` names the fields that passes and hosts keep up to date.

    Unknown fields are refused. Read-only ones are too, but for a PUT, which sends back what a GET gave; there they say nothing.
    Rules across rows are the services', so none is checked twice here.
    """

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.BooleanField: TrueOrFalseField,
        models.CharField: ExactCharField,
        models.TextField: ExactCharField,
        models.DateTimeField: UtcDateTimeField,
        models.DecimalField: PlainDecimalField,
    }
    reason = ExactCharField(
        write_only=True, required=False, default="", allow_blank=True, max_length=100, help_text="Why; kept in the history."
    )

    def get_validators(self) -> list[Any]:
        return []

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            self._refuse_strays(data)
        return super().to_internal_value(data)

    def _refuse_strays(self, data: dict[str, Any]) -> None:
        replacing = self.instance is not None and not self.partial
        errors = {name: [UNKNOWN] for name in data if name not in self.fields}
        if not replacing:
            errors.update({name: [READ_ONLY] for name in data if name in self.fields and self.fields[name].read_only})
        if errors:
            raise ValidationError(errors)
