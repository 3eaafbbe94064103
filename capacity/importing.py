"""Result files judged for a profile, and the one of their sweeps that is stored: the same for command, API and page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.utils import timezone

from quotas.models import User

from .bench.formats import own
from .bench.formats.contract import Unreadable
from .bench.formats.opening import LARGEST
from .bench.imports import Imported, read_files
from .domain.measurement.document import import_document
from .domain.measurement.judge import MOST_REPLICAS, judge
from .domain.measurement.moment import moment_of
from .domain.measurement.types import Judgement, Slo
from .models import Measurement, Profile
from .services import Origin, measurement_of, measurement_store
from .slo_rows import slo_named, slo_of_row

LARGEST_UPLOAD: Final = LARGEST
"""Bytes of all files of one upload together."""
LONGEST_NUMBER: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a person asks of the files. `slo`: a name or text; empty is that of an exported measurement, else the profile's
    model's. `replicas` None: as exported, else 1. `sweep`: which one, from 1; needed where there are several. `concurrency`:
    stated where a sweep says none."""

    profile: Profile | None = None
    slo: str = ""
    replicas: int | None = None
    sweep: int | None = None
    concurrency: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The files' sweeps, each judged by `slo` with so many replicas behind it."""

    asked: Asked
    imported: Imported
    slo: Slo | None
    replicas: int
    judgements: tuple[Judgement, ...]

    def document(self) -> dict[str, Any]:
        """`llmgw.import/1`."""
        return import_document(self.judgements, (*self.imported.skipped, *self.imported.unread))

    @property
    def chosen(self) -> Judgement:
        """The sweep that is asked for. ValidationError where it must be named, or is none."""
        number, count = self.asked.sweep, len(self.judgements)
        if number is None and count > 1:
            raise ValidationError({"sweep": f"The files hold {count} sweeps: say which one, from 1 to {count}."})
        if not 1 <= (number or 1) <= count:
            raise ValidationError(
                {"sweep": f"The files hold {count} sweep{'s' if count > 1 else ''}: there is no sweep {number}."}
            )
        return self.judgements[(number or 1) - 1]


def judged(imported: Imported, asked: Asked) -> Judged:
    """ValidationError for an SLO that is none, or replicas that cannot be."""
    replicas = asked.replicas or _whole(told(imported, own.REPLICAS)) or 1
    if asked.replicas == 0 or not 1 <= replicas <= MOST_REPLICAS:
        raise ValidationError({"replicas": f"A whole number from 1 to {MOST_REPLICAS}."})
    slo = _slo(imported, asked)
    found = tuple(judge(sweep, slo, replicas) for sweep in imported.sweeps)
    return Judged(asked=asked, imported=imported, slo=slo, replicas=replicas, judgements=found)


def _slo(imported: Imported, asked: Asked) -> Slo | None:
    try:
        named = slo_named(asked.slo or told(imported, own.SLO))
    except ValueError as why:
        raise ValidationError({"slo": str(why)}) from None
    row = asked.profile.model.slo if asked.profile else None
    return named or (slo_of_row(row) if row else None)


def told(imported: Imported, hint: str) -> str:
    """What an export of llmgw says of how it was judged; empty where a file is another, or two of them differ."""
    of_own = [sweep.setting.hints.get(hint, "") for sweep in imported.sweeps if own.MEASURED_AT in sweep.setting.hints]
    alike = len(of_own) == len(imported.sweeps) and len(set(of_own)) == 1
    return of_own[0] if alike else ""


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < LONGEST_NUMBER else None


def would_store(found: Judged) -> tuple[Measurement, list[str]]:
    """The row that would be written, and what would be warned of. Writes nothing. ValidationError as `store`."""
    return measurement_of(_profile(found), found.chosen, **_options(found))


def store(found: Judged, *, actor: User | None, reason: str) -> tuple[Measurement, list[str]]:
    """Stores the chosen sweep; warnings. ValidationError, with nothing stored, where it gives none."""
    return measurement_store(_profile(found), found.chosen, actor=actor, reason=reason, **_options(found))


def _profile(found: Judged) -> Profile:
    if found.asked.profile is None:
        raise ValidationError({"profile": "Say which profile was measured."})
    return found.asked.profile


def _options(found: Judged) -> dict[str, Any]:
    files = [{"name": Path(file.name).name, "sha256": file.sha256} for file in found.imported.files]
    stated = found.asked.concurrency
    if stated is None and found.chosen.measured is None:
        stated = _whole(told(found.imported, own.CONCURRENCY))
    origin = Origin(files=files, measured_at=_not_later(moment_of(found.chosen.sweep.setting.hints), timezone.now()))
    return {"slo": found.slo, "replicas": found.replicas, "concurrency": stated, "origin": origin}


def _not_later(at: datetime | None, now: datetime) -> datetime | None:
    """The newest measurement is in use: a file that names a day to come would be for ever."""
    return min(at, now) if at else None


def profile_named(profiles: Any, model: str, name: str) -> Profile | None:
    """Of those profiles the one of that model and name; None where neither is given. ValidationError where there is none."""
    if not model and not name:
        return None
    if not model or not name:
        missing = "profile" if model else "model"
        raise ValidationError({missing: "A profile is named by both: its model and its own name."})
    found: Profile | None = profiles.filter(model__name=model, name=name).select_related("model__slo").first()
    if found is None:
        raise ValidationError({"profile": f"There is no profile “{name}” of a model “{model}”."})
    return found


# --- uploads ------------------------------------------------------------------------------------------------------
def read_uploads(files: Sequence[UploadedFile]) -> Imported:
    """What the uploaded files hold; nothing of them stays on disk. ValidationError where nothing is read, each file with why."""
    if not files:
        raise ValidationError({"file": "Choose at least one result file."})
    total = sum(file.size or 0 for file in files)
    if total > LARGEST_UPLOAD:
        raise ValidationError(
            {"file": f"These are {total / 2**20:.0f} MB, and at most {LARGEST_UPLOAD // 2**20} MB are read at once."}
        )
    try:
        with _on_disk(files) as paths:
            imported = read_files(paths, [str(file.name) for file in files])
    except Unreadable as why:
        raise ValidationError({"file": str(why)}) from None
    if not imported.sweeps:
        raise ValidationError(
            {"file": [f"{row.where}: {row.why}" for row in imported.unread] or ["Nothing in them can be used."]}
        )
    return imported


@contextmanager
def _on_disk(files: Iterable[UploadedFile]) -> Iterator[list[Path]]:
    with TemporaryDirectory(prefix="llmgw-import-") as place:
        paths = []
        for number, file in enumerate(files):
            path = Path(place) / str(number)
            with path.open("wb") as out:
                for chunk in file.chunks():
                    out.write(chunk)
            paths.append(path)
        yield paths
