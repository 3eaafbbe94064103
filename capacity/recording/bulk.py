"""Many rows in one statement that is run for each, so that the number of queries of a pass does not grow with the fleet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field, JSONField, Model


def insert(rows: Sequence[Model]) -> None:
    """Inserts rows of one kind. They are not told their primary keys: read those anew where they are needed."""
    if not rows:
        return
    meta = rows[0]._meta
    fields = [field for field in meta.concrete_fields if not field.primary_key]
    columns, places = ", ".join(_quoted(field.column) for field in fields), ", ".join("%s" for _ in fields)
    statement = f"INSERT INTO {_quoted(meta.db_table)} ({columns}) VALUES ({places})"  # noqa: S608 - own names
    _run(statement, rows, fields)


def update(rows: Sequence[Model], names: Sequence[str]) -> None:
    """Writes the fields `names` of rows of one kind, found by primary key."""
    if not rows:
        return
    meta = rows[0]._meta
    fields = [meta.get_field(name) for name in names]
    columns = ", ".join(f"{_quoted(field.column)} = %s" for field in fields)
    statement = f"UPDATE {_quoted(meta.db_table)} SET {columns} WHERE {_quoted(meta.pk.column)} = %s"  # noqa: S608 - own names
    _run(statement, rows, [*fields, meta.pk])


def _run(statement: str, rows: Iterable[Model], fields: Sequence[Field]) -> None:
    target = connections[DEFAULT_DB_ALIAS]
    with target.cursor() as cursor:
        cursor.executemany(statement, [_values(row, fields, target) for row in rows])


def _values(row: Model, fields: Sequence[Field], target: BaseDatabaseWrapper) -> list[object]:
    return [_value(getattr(row, field.attname), field, target) for field in fields]


def _value(value: object, field: Field, target: BaseDatabaseWrapper) -> object:
    # a number is stored as it is, except in JSON; asking the field costs more than the row
    if isinstance(value, (int, float)) and not isinstance(field, JSONField):
        return value
    return field.get_db_prep_save(value, target)


def _quoted(name: str) -> str:
    return connections[DEFAULT_DB_ALIAS].ops.quote_name(name)
