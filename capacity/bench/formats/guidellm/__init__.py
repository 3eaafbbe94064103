"""GuideLLM, all generations of its JSON (≤ 0.3, 0.4, 0.5/0.6, 0.7/0.8) and its two kinds of CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from capacity.bench.formats import values
from capacity.bench.formats.contract import Opened, Unreadable
from capacity.bench.formats.guidellm import documents, early_table, table
from capacity.bench.formats.guidellm.stages import NAME
from capacity.domain.measurement.types import Contents

__all__ = ["NAME", "read", "recognises"]

_FLAT_SUMMARY = ("benchmark_id", "itl_mean_ms", "request_latency_mean_ms")


def recognises(opened: Opened) -> bool:
    if opened.shape == "csv":
        return table.recognises(opened.documents) or early_table.recognises(opened.documents)
    return any(documents.recognises(document) or _is_flat(document) for document in opened.documents[:1])


def read(opened: Opened) -> Contents:
    """One setting a file; stages in the file's order. Unbounded `throughput` rows and shifted CSV rows are skipped."""
    if opened.shape != "csv" and _is_flat(opened.documents[0]):
        raise Unreadable(f"another script made this summary from a {NAME} file and mislabelled units; import {NAME}'s own JSON.")
    return values.contents(_rows(opened))


def _rows(opened: Opened) -> Iterable[values.Row]:
    if opened.shape != "csv":
        return (row for document in opened.documents for row in documents.rows(opened.where, document))
    reader = table if table.recognises(opened.documents) else early_table
    return reader.rows(opened.where, opened.documents)


def _is_flat(document: Any) -> bool:
    return isinstance(document, Mapping) and all(key in document for key in _FLAT_SUMMARY)
