"""How one row is checked, written and deleted: one writer at a time, history with who and why, nothing for an unchanged row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from ..models import Revision, User

LONGEST_REASON = 100
"""As wide as the history's column."""

SHOWN_AT: Mapping[str, tuple[str, ...]] = {
    "edge_no_self": ("parent",),
    "edge_once": ("parent",),
    "edge_one_funding": ("is_funding",),
    "quota_once": ("target",),
    "quota_limit_covers_guarantee": ("limit", "guarantee"),
    "quota_model_limit_only": ("guarantee",),
    "settings_wake_below_idle": ("wake_seconds", "idle_seconds"),
    "settings_silent_below_lost": ("node_silent_seconds", "node_lost_seconds"),
    "model_max_covers_min": ("max_replicas", "min_replicas"),
    "profile_once": ("name",),
    "price_once": ("since",),
}
"""Constraint → the fields it compares. Its sentence is shown at the first of them; several are named with their numbers."""


OBSERVED = frozenset({"last_login"})
"""Editable by Django's word, yet written by events alone."""


class Conflict(ValidationError):
    """Somebody else's edit came first: load again, then decide."""


class Findings:
    """What the rules say about one row."""

    def __init__(self) -> None:
        self.refusals: dict[str, list[Any]] = defaultdict(list)
        self.warnings: list[str] = []

    def refuse(self, field: str, sentence: str) -> None:
        self.refusals[field].append(sentence)

    def warn(self, sentence: str) -> None:
        self.warnings.append(sentence)


Rule = Callable[[Any, Any, Findings], None]
"""(row as wished, row as stored or None, findings): refuses, warns, or completes the row."""
DeleteRule = Callable[[Any, Findings], None]
After = Callable[[Any, Any, User | None, str], None]
"""(row as written, row as it was or None, actor, reason): what else an edit of this kind brings with it."""
BeforeDelete = Callable[[Any, User | None, str], None]

_rules: dict[type[models.Model], list[Rule]] = defaultdict(list)
_delete_rules: dict[type[models.Model], list[DeleteRule]] = defaultdict(list)
_after: dict[type[models.Model], list[After]] = defaultdict(list)
_before_delete: dict[type[models.Model], BeforeDelete] = {}


def rule_for(*kinds: type[models.Model]) -> Callable[[Rule], Rule]:
    """Adds a rule to all saves of these kinds of rows, whichever app knows the rule."""

    def add(rule: Rule) -> Rule:
        for kind in kinds:
            _rules[kind].append(rule)
        return rule

    return add


def delete_rule_for(*kinds: type[models.Model]) -> Callable[[DeleteRule], DeleteRule]:
    def add(rule: DeleteRule) -> DeleteRule:
        for kind in kinds:
            _delete_rules[kind].append(rule)
        return rule

    return add


def after_save_of(kind: type[models.Model]) -> Callable[[After], After]:
    """In the order in which they are added."""

    def add(function: After) -> After:
        _after[kind].append(function)
        return function

    return add


def before_delete_of(kind: type[models.Model]) -> Callable[[BeforeDelete], BeforeDelete]:
    return lambda function: _before_delete.setdefault(kind, function)


@contextmanager
def exclusive() -> Iterator[Revision]:
    """One edit at a time: a transaction that holds the revision's row. Edits inside see all that was committed before."""
    with transaction.atomic():
        Revision.objects.get_or_create(pk=1)
        yield Revision.objects.select_for_update().get(pk=1)


def revision() -> int:
    """The number of the last edit; readers load again when it moved."""
    return Revision.objects.filter(pk=1).values_list("number", flat=True).first() or 0


def raise_revision() -> None:
    Revision.objects.filter(pk=1).update(number=models.F("number") + 1, changed_at=timezone.now())


def check(row: models.Model) -> list[str]:
    """Warnings about a row that may be saved. Refuses with all that is wrong, each at its field."""
    findings = Findings()
    _check_whole_numbers(row, findings)
    _check_json_kinds(row, findings)
    _check_fields(row, findings)
    if not findings.refusals:
        _check_constraints(row, findings)
        stored = stored_row(row)
        for rule in _rules[type(row)]:
            rule(row, stored, findings)
    if findings.refusals:
        raise ValidationError(dict(findings.refusals))
    return findings.warnings


def _check_whole_numbers(row: models.Model, findings: Findings) -> None:
    """Django would cut 1.5 down to 1 without a word."""
    for field in row._meta.concrete_fields:
        value = getattr(row, field.attname)
        if isinstance(field, models.IntegerField) and (isinstance(value, bool) or value != value or _has_fraction(value)):
            findings.refuse(field.name, f"{value} is not a whole number.")


def _has_fraction(value: object) -> bool:
    return isinstance(value, float | Decimal) and value % 1 != 0


def _check_json_kinds(row: models.Model, findings: Findings) -> None:
    """Django runs no validator over what it holds for blank: [], "" and {} alike."""
    for field in row._meta.concrete_fields:
        kind = field.default
        if isinstance(field, models.JSONField) and isinstance(kind, type) and not isinstance(getattr(row, field.attname), kind):
            findings.refuse(field.name, f"This is a JSON {'object' if kind is dict else kind.__name__}.")


def _check_fields(row: models.Model, findings: Findings) -> None:
    try:
        row.full_clean(exclude=_unsaved_relations(row), validate_constraints=False)
    except ValidationError as error:
        for field, errors in error.error_dict.items():
            findings.refusals[field].extend(errors)


def _unsaved_relations(row: models.Model) -> set[str]:
    """Foreign keys to rows that the same form is about to make."""
    relations = (field for field in row._meta.concrete_fields if field.is_relation and field.is_cached(row))
    return {field.name for field in relations if (other := getattr(row, field.name)) is not None and other.pk is None}


def _check_constraints(row: models.Model, findings: Findings) -> None:
    unsaved = _unsaved_relations(row)
    for constraint in row._meta.constraints:
        try:
            constraint.validate(type(row), row, exclude=unsaved)
        except ValidationError as error:
            _refuse_by_constraint(row, constraint.name, error.messages[0], findings)


def _refuse_by_constraint(row: models.Model, name: str, sentence: str, findings: Findings) -> None:
    fields = SHOWN_AT.get(name, ())
    if len(fields) > 1:
        numbers = ", ".join(f"{field.replace('_', ' ')} {getattr(row, field)}" for field in fields)
        sentence = f"{sentence.rstrip('.')} ({numbers})."
    findings.refuse(fields[0] if fields else NON_FIELD_ERRORS, sentence)


def stored_row(row: models.Model) -> Any:
    return None if row.pk is None else type(row)._base_manager.filter(pk=row.pk).first()


def written_fields(kind: type[models.Model]) -> list[models.Field[Any, Any]]:
    """What people edit and what history keeps. What passes and hosts observe is never written over by a person's save."""
    history = getattr(kind, "history", None)
    kept = {field.name for field in history.model.tracked_fields} if history else set()
    fields = (field for field in kind._meta.concrete_fields if not field.primary_key)
    return [field for field in fields if (field.editable or field.name in kept) and field.name not in OBSERVED]


def changed_fields(row: models.Model, stored: models.Model) -> list[str]:
    fields = written_fields(type(row))
    return [field.name for field in fields if getattr(row, field.attname) != getattr(stored, field.attname)]


def save(row: Any, *, actor: User | None, reason: str = "") -> list[str]:
    """Checks and writes one row, with history; returns warnings. An unchanged row writes nothing."""
    with exclusive():
        sign(row, actor, reason)
        stored = stored_row(row)
        warnings = check(row)
        if write(row, actor=actor, reason=reason):
            for follow in _after[type(row)]:
                follow(row, stored, actor, reason)
    return warnings


def write(row: Any, *, actor: User | None, reason: str) -> bool:
    """Writes what changed of a checked row and raises the revision; False where nothing changed. Inside `exclusive()`."""
    stored = stored_row(row)
    changed = None if stored is None else changed_fields(row, stored)
    if changed == []:
        return False
    sign(row, actor, reason)
    try:
        with transaction.atomic():
            row.save(update_fields=changed)
    except IntegrityError as error:
        raise Conflict(
            {NON_FIELD_ERRORS: "Somebody saved something that excludes this at the same moment; load again."}
        ) from error
    raise_revision()
    return True


def delete(row: Any, *, actor: User | None, reason: str = "") -> None:
    """Deletes one row, with history; refused by the rules of its kind, and where other rows need it."""
    with exclusive():
        sign(row, actor, reason)
        check_delete(row)
        if type(row) in _before_delete:
            _before_delete[type(row)](row, actor, reason)
        erase(row, actor=actor, reason=reason)


def check_delete(row: Any) -> None:
    findings = Findings()
    for rule in _delete_rules[type(row)]:
        rule(row, findings)
    if findings.refusals:
        raise ValidationError(dict(findings.refusals))


def erase(row: Any, *, actor: User | None, reason: str) -> None:
    """Deletes a row whose deletion was checked. Inside `exclusive()`."""
    sign(row, actor, reason)
    try:
        row.delete()
    except models.ProtectedError as error:
        names = listed([str(other) for other in error.protected_objects])
        raise ValidationError({NON_FIELD_ERRORS: f"{row} is still needed by {names}."}) from error
    raise_revision()


def sign(row: Any, actor: User | None, reason: str = "") -> None:
    """Says who edits the row and why, for the history and for rules that want a reason."""
    if len(reason) > LONGEST_REASON:
        raise ValidationError({NON_FIELD_ERRORS: f"The reason is longer than {LONGEST_REASON} characters."})
    row._history_user = actor
    row._change_reason = reason or None


def actor_of(row: Any) -> Any:
    """Who edits the row: what `sign` said; None is the product itself."""
    return getattr(row, "_history_user", None)


def listed(names: list[str], at_most: int = 5) -> str:
    """`a, b, c` and how many more there are."""
    shown = ", ".join(sorted(names)[:at_most])
    return shown if len(names) <= at_most else f"{shown} and {len(names) - at_most} more"
