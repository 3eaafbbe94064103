"""Plotly's own script, served out of the installed package: no copy of it lives in this project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

SCRIPT = "plotly.min.js"


class PlotlyFinder(BaseFinder):
    """Finds exactly `plotly/plotly.min.js`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.storage = FileSystemStorage(location=settings.PLOTLY_PACKAGE_DATA)
        self.storage.prefix = "plotly"  # type: ignore[attr-defined]

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> str | list[str]:
        if path != f"plotly/{SCRIPT}":
            return []
        found = self.storage.path(SCRIPT)
        return [found] if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, FileSystemStorage]]:
        yield SCRIPT, self.storage
