"""Answers of a Prometheus server's HTTP API (Prometheus, Thanos, Mimir, VictoriaMetrics), read leniently.

An empty answer is no data and never 0; so is the value NaN, which stays NaN here. The form is that of
https://prometheus.io/docs/prometheus/latest/querying/api/.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

MAX_MESSAGE_CHARACTERS = 300
LATEST = 2.0**33  # seconds since 1970: beyond it lies no time that a calendar knows
Point = tuple[float, float]  # seconds since 1970, value (may be NaN or infinite)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One series: its labels (none for a scalar) and its points, oldest first."""

    labels: Mapping[str, str]
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was found, and what the server warned of (an answer with warnings may be a part of the whole)."""

    rows: tuple[Row, ...]
    warnings: tuple[str, ...] = ()


class ApiError(Exception):
    """The server did not answer the query; the text is a sentence."""


def read_answer(body: str | bytes) -> Answer:
    """Read the answer to a query: a vector, a matrix or a scalar. Raises ApiError with the server's own message, or where this is
    no such answer. A series that cannot be read is left out."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise ApiError("The Prometheus server's answer is no JSON.") from None
    if not isinstance(document, dict) or document.get("status") not in ("success", "error"):
        raise ApiError("The answer is none of a Prometheus server's HTTP API.")
    if document["status"] == "error":
        raise ApiError(_refusal(document))
    return Answer(rows=_rows(document.get("data")), warnings=_texts(document.get("warnings")))


def _refusal(document: Mapping[str, object]) -> str:
    kind, message = (str(document.get(key) or "") for key in ("errorType", "error"))
    said = ": ".join(part for part in (kind, message) if part)[:MAX_MESSAGE_CHARACTERS]
    return f"The Prometheus server refused the query ({said or 'it does not say why'})."


def _rows(data: object) -> tuple[Row, ...]:
    match data:
        case {"resultType": "scalar", "result": [_, _] as pair}:
            return _row({"metric": {}, "value": pair})
        case {"resultType": "vector" | "matrix", "result": [*found]}:
            return tuple(row for one in found for row in _row(one))
    raise ApiError("The Prometheus server's answer is of a kind that holds no numbers.")


def _row(found: object) -> tuple[Row, ...]:
    """A series of a vector or a matrix; none where it has no labels, or no point that can be read."""
    if not isinstance(found, dict) or not isinstance(labels := found.get("metric"), dict):
        return ()
    pairs = found["values"] if isinstance(found.get("values"), list) else [found.get("value")]
    points = tuple(point for pair in pairs if (point := _point(pair)) is not None)
    return (Row(labels={str(name): str(value) for name, value in labels.items()}, points=points),) if points else ()


def _point(pair: object) -> Point | None:
    """[seconds, "value"], as the API writes them; histograms of their own kind are no number."""
    match pair:
        case [int() | float() as at, str() as text] if 0 <= at < LATEST:
            try:
                return float(at), float(text)
            except ValueError:
                return None
    return None


def _texts(found: object) -> tuple[str, ...]:
    return tuple(str(text)[:MAX_MESSAGE_CHARACTERS] for text in found) if isinstance(found, list) else ()
