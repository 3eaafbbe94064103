"""What a model would take to serve a demand, answered as one types; the question is in the address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst
from django.views.decorators.http import require_safe

from ..briefings.target import Target, target_for
from ..domain.sizing import WrongQuestion, question_of
from ..domain.sizing.document import cost_sentence, instead
from ..domain.sizing.nodes import NodeRow, node_rows
from ..domain.sizing.question import COMPANIONS, DEFAULTS, KEYS, LEADS, NUMBERS, ROOMS, UNITS
from ..domain.sizing.words import amount, command, hold_sentence, sentence, stopped, wanting
from ..models import LanguageModel
from .model_page import model_page, visible_model

BY: Final = {
    "tokens_per_second": "output tokens a second",
    "requests_per_second": "requests a second",
    "in_flight": "requests in flight",
    "users": "users",
}
MARKS: Final = {"fits": ("good", "●"), "partial": ("warn", "◐"), "none": ("bad", "✕"), "unknown": ("unknown", "○")}
READ: Final = {
    "quotas_read_at": "Quotas read",
    "measurements_read_at": "Measurements read",
    "oldest_host_report_at": "Oldest report of a host",
}
MOST_CELLS: Final = 32
"""A node with more units of a class is said in numbers alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """A node of the map; `cells` empty where there are too many to draw."""

    row: NodeRow
    cells: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the address asks. `words` empty: nothing yet; `shown`: what stands in the form."""

    by: str
    words: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)


@require_safe
def target_page(request: HttpRequest, name: str) -> HttpResponse:
    """GET alone. A model that is itself named `…/target` has this address for its page."""
    if LanguageModel.objects.visible_to(request.user).filter(name=f"{name}/target").exists():  # type: ignore[misc]
        return model_page(request, f"{name}/target")
    model = visible_model(request, name)
    asked = read(request.GET)
    context = {"model": model, "asked": asked, "place": "models", **form(model, asked), **answered(request, model, asked)}
    # a part that is asked for is shown whatever it says
    wrong = "wrong" in context and not request.htmx  # type: ignore[attr-defined]
    page = render(request, "pages/target.html", context, status=400 if wrong else 200)
    if request.htmx:  # type: ignore[attr-defined]
        page["HX-Replace-Url"] = f"{reverse('model_target', args=[model.name])}?{address(asked)}"
    return page


def read(query: QueryDict) -> Asked:
    """`by` says which demand is meant where the form still holds others."""
    shown = {key: query.getlist(key) if key == "profile" else query[key] for key in query if key in KEYS}
    given = [key for key in LEADS if shown.get(key)]
    by = query.get("by", "")
    if by not in LEADS:
        return Asked(by=given[0] if given else LEADS[0], words=shown if given else {}, shown=shown)
    kept = (by, *COMPANIONS[by])
    words = {key: value for key, value in shown.items() if key in kept or key not in NUMBERS}
    return Asked(by=by, words=words if shown.get(by) else {}, shown=shown)


def form(model: LanguageModel, asked: Asked) -> dict[str, Any]:
    stale = str(asked.shown.get("stale") or DEFAULTS["stale"])
    return {
        "ways": BY,
        "rooms": ROOMS,
        "stales": list(dict.fromkeys(["exclude", "use", "derate:0.8", stale])),
        "stale": stale,
        "room": asked.shown.get("room") or DEFAULTS["room"],
        "profiles": list(model.profiles.order_by("-priority", "name").values_list("name", flat=True)),
        "chosen": asked.shown.get("profile", []),
    }


def answered(request: HttpRequest, model: LanguageModel, asked: Asked) -> dict[str, Any]:
    if not asked.words:
        return {}
    try:
        found = target_for(request.user, model, question_of(asked.words), timezone.now())  # type: ignore[arg-type]
    except WrongQuestion as wrong:
        return {"wrong": in_words_of_the_form(wrong)}
    return said(found, sees_hosts=request.user.sees_everything)  # type: ignore[union-attr]


def in_words_of_the_form(wrong: WrongQuestion) -> str:
    """The sentence with the names that the fields have on the page."""
    said = wrong.sentence
    for key in NUMBERS if wrong.key in ("demand", *NUMBERS) else ():
        said = re.sub(rf"\b{key}\b", BY.get(key, key.replace("_", " ")), said)
    return capfirst(said)


def said(found: Target, *, sees_hosts: bool) -> dict[str, Any]:
    answer = found.answer
    level, icon = MARKS[answer.verdict]
    word, _, rest = sentence(answer).partition(": ")
    return {
        "answer": answer,
        "level": level,
        "icon": icon,
        "word": word,
        "rest": rest,
        "unit": UNITS[answer.question.unit],
        "rows": [(row, None if row.each is None else amount(row.each)) for row in answer.rows],
        "hold": hold_sentence(answer),
        "cost": cost_sentence(found.cost),
        "cost_note": found.cost_note,
        "missing": [wanting(row) for row in answer.missing],
        "binding": [stopped(stop) for stop in answer.binding],
        "instead": instead(answer),
        "nodes": [drawn(row) for row in node_rows(found.built.snapshot, answer) if sees_hosts or row.added],
        "at": found.built.snapshot.at,
        "read": [(words, moment(found.inputs[key])) for key, words in READ.items()],
        "command": command(answer.model, answer.question),
    }


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def address(asked: Asked) -> str:
    """The question alone, as short as it can be said: what is the default, and what another demand left behind, is not in it."""
    said = [(key, value) for key, value in asked.words.items() if value not in ("", []) and value != DEFAULTS.get(key)]
    return urlencode(said, doseq=True)


def drawn(row: NodeRow) -> Cells:
    """■ held, ▣ added, □ free."""
    if row.units > MOST_CELLS or row.held + row.added > row.units:
        return Cells(row=row, cells="")
    return Cells(row=row, cells="■" * row.held + "▣" * row.added + "□" * row.free)
