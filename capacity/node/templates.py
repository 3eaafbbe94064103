"""Runtime templates: which argument lists this host may run at all.

They lie in a file of the host's administrator, so that reaching Redis is not running commands: an order carries a
template's name and values, each checked here, and nothing goes through a shell.
"""

from __future__ import annotations

import os
import re
import stat
import string
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from capacity.node.parameters import Parameter, Refused, parse_parameter, shown

BUILT_IN = Path(__file__).with_name("templates.toml")
_PROJECT = Path(__file__).resolve().parents[2]
_GIVEN = frozenset({"port", "host", "model", "devices", "python", "project"})
_NAME = re.compile(r"[a-z][a-z0-9_]{0,49}")
_TEMPLATE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_FILE_BYTES = 1_000_000


class InvalidTemplates(ValueError):
    """The file may not be used; the text is one sentence that names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One argument list with placeholders. `health` is the path of the engine's own health page."""

    name: str
    command: tuple[str, ...]
    health: str = "/health"
    directory: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is run: arguments, the folder it runs in, and the variables its template declares."""

    arguments: tuple[str, ...]
    directory: str
    environment: Mapping[str, str]
    health: str


def rendered(template: Template, *, model: str, values: Mapping[str, str], host: str, port: int, devices: str) -> Command:
    """Template + checked values → Command; Refused with a sentence where a value is unknown, missing or not allowed."""
    filled = _checked(template, values) | {
        "model": _checked_model(model, template),
        "host": host,
        "port": str(port),
        "devices": devices,
        "python": sys.executable,
        "project": str(_PROJECT),
    }
    return Command(
        arguments=tuple(part.format_map(filled) for part in template.command),
        directory=template.directory.format_map(filled),
        environment={key: value.format_map(filled) for key, value in template.environment.items()},
        health=template.health,
    )


def _checked(template: Template, values: Mapping[str, str]) -> dict[str, str]:
    unknown = sorted(set(values) - set(template.parameters))
    if unknown:
        raise Refused(f"Template {template.name} has no parameter {shown(unknown[0])}.")
    given = {name: values.get(name, parameter.default) for name, parameter in template.parameters.items()}
    missing = [name for name, value in given.items() if value is None]
    if missing:
        raise Refused(f"Template {template.name} needs the parameter {missing[0]}, which the order does not give.")
    return {name: template.parameters[name].checked(value) for name, value in given.items() if value is not None}


def _checked_model(model: str, template: Template) -> str:
    """A model's name is free text; as an argument it must not look like an option or hide anything."""
    if not any("{model}" in part for part in (*template.command, *template.environment.values())):
        return model
    if not model or len(model) > 200 or model.startswith("-") or not model.isprintable():
        raise Refused(
            f"The model's name {shown(model)} cannot be an argument: 1 to 200 printable characters, not beginning with -."
        )
    return model


def template_source(path: Path | None) -> Callable[[], dict[str, Template]]:
    """A function that reads the built-in templates and those of `path` afresh: an edit counts from the next start on."""

    def read() -> dict[str, Template]:
        # The built-in file is part of the program: whoever may write it may write the program, so it is not checked.
        built_in = parse_templates(BUILT_IN.read_text(), BUILT_IN.name)
        return built_in if path is None else built_in | load_templates(path)

    return read


def declared(templates: Mapping[str, Template]) -> dict[str, dict[str, bool]]:
    """Template → parameter → whether a value must be given, for the report: neither commands nor bounds leave the host."""
    return {
        name: {parameter: row.default is None for parameter, row in sorted(template.parameters.items())}
        for name, template in sorted(templates.items())
    }


def load_templates(path: Path) -> dict[str, Template]:
    """Read an administrator's file; InvalidTemplates where it, or the folder it lies in, could be written by others."""
    try:
        real = path.resolve(strict=True)
        with real.open("rb") as file:
            _check_owner(path, "file", os.fstat(file.fileno()))
            _check_owner(path, "folder of the file", real.parent.stat())
            content = file.read(_MAX_FILE_BYTES + 1)
        if len(content) > _MAX_FILE_BYTES:
            raise InvalidTemplates(f"{path} has more than {_MAX_FILE_BYTES} bytes.")
        return parse_templates(content.decode(), str(path))
    except OSError as error:
        raise InvalidTemplates(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidTemplates(f"{path} is not UTF-8 text.") from error


def _check_owner(path: Path, what: str, status: os.stat_result) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise InvalidTemplates(f"{path}: the {what} belongs to user {status.st_uid}, not to root or the worker's own user.")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidTemplates(f"{path}: the {what} may be written by others; take that away with chmod go-w.")


def parse_templates(text: str, source: str) -> dict[str, Template]:
    """TOML text → templates by name; InvalidTemplates names the source and the fault."""
    try:
        document = tomllib.loads(text)
        if set(document) != {"templates"} or not isinstance(document["templates"], dict):
            raise ValueError("it must have one table, [templates], and nothing else at the top")
        return {name: _template(name, row) for name, row in document["templates"].items()}
    except ValueError as error:  # TOMLDecodeError is one
        raise InvalidTemplates(f"{source} is not usable: {str(error).rstrip('.')}.") from error


def _template(name: str, row: object) -> Template:
    if not _TEMPLATE_NAME.fullmatch(name):
        raise ValueError(f"template name {name!r} has other characters than letters, digits and . _ -")
    if not isinstance(row, dict):
        raise ValueError(f"template {name} is not a table")
    unknown = sorted(set(row) - {"command", "health", "directory", "environment", "parameters"})
    if unknown:
        raise ValueError(f"template {name} has an unknown key {unknown[0]!r}")
    parameters = _parameters(name, row.get("parameters", {}))
    template = Template(
        name=name,
        command=_command(name, row),
        health=_text(name, row, "health", "/health", "/"),
        directory=_text(name, row, "directory", "/", ("/", "{project}")),
        environment=_environment(name, row.get("environment", {})),
        parameters=parameters,
    )
    for text in (*template.command, template.directory, *template.environment.values()):
        _check_placeholders(name, text, _GIVEN | set(parameters))
    return template


def _command(name: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    command = row.get("command")
    if not isinstance(command, list) or not command or not all(isinstance(part, str) and "\0" not in part for part in command):
        raise ValueError(f"template {name} needs a command, a list of texts")
    program = command[0]
    if not program.startswith("/") and program != "{python}":
        raise ValueError(f"template {name}: the program {program!r} is neither an absolute path nor {{python}}")
    return tuple(command)


def _text(name: str, row: Mapping[str, Any], key: str, default: str, start: str | tuple[str, ...]) -> str:
    value = row.get(key, default)
    if not isinstance(value, str) or not value.startswith(start):
        raise ValueError(f"template {name}: {key} must be a text that begins with {start}")
    return value


def _parameters(name: str, rows: object) -> dict[str, Parameter]:
    if not isinstance(rows, dict):
        raise ValueError(f"template {name}: parameters is not a table")
    for key in rows:
        if not _NAME.fullmatch(key) or key in _GIVEN:
            raise ValueError(f"template {name}: a parameter may not be called {key!r}")
    return {key: parse_parameter(key, row) for key, row in rows.items()}


def _environment(name: str, rows: object) -> dict[str, str]:
    if not isinstance(rows, dict) or not all(isinstance(value, str) and "\0" not in value for value in rows.values()):
        raise ValueError(f"template {name}: environment is not a table of texts")
    for key in rows:
        if not _VARIABLE.fullmatch(key):
            raise ValueError(f"template {name}: {key!r} is no name of a variable")
    return dict(rows)


def _check_placeholders(name: str, text: str, allowed: frozenset[str] | set[str]) -> None:
    for _, placeholder, form, conversion in string.Formatter().parse(text):
        if placeholder is None:
            continue
        if placeholder not in allowed or form or conversion:
            raise ValueError(f"template {name}: {{{placeholder}}} is no placeholder or declared parameter")
