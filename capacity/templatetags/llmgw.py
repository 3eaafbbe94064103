"""Marks with one meaning on every page: load bars, sparklines, states, ages and numbers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django import template
from django.core.serializers.json import DjangoJSONEncoder
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join, json_script
from django.utils.safestring import SafeString, mark_safe

from .. import clock
from ..views.words import title

register = template.Library()

NUMBERS = re.compile(r"(?<!\w)(\d[\d,]*(?:\.\d+)?)")
BAR_END = 120  # a load bar runs from 0 to 120 %
STATE_ICONS = {"ready": "●", "unready": "○", "starting": "◔", "draining": "◑", "gone": "×"}
STATE_LEVELS = {"ready": "good", "unready": "bad", "starting": "accent", "draining": "warn", "gone": "unknown"}
ACTION_ICONS = {
    "done": "✓",
    "failed": "✕",
    "dropped": "–",
    "ended": "×",
    "advice": "i",
    "pending": "◔",
    "sent": "→",
    "withheld": "■",
}
ACTION_LEVELS = {
    "done": "good",
    "failed": "bad",
    "dropped": "unknown",
    "ended": "bad",
    "advice": "unknown",
    "pending": "accent",
    "sent": "accent",
    "withheld": "warn",
}


@register.filter
def shell(name: str) -> str:
    """A name as a word of a command that people copy into a shell: whatever it holds, nothing of it is run."""
    return shlex.quote(name)


@register.simple_tag
def ago(at: datetime | None, suffix: str = "ago") -> SafeString | str:
    """An age that the page's script keeps counting; the exact time on hover."""
    if at is None:
        return "never"
    words = clock.age(at, timezone.now())
    return format_html(
        '<time datetime="{}" title="{}" data-ago="{}">{}{}</time>',
        clock.iso(at),
        clock.exact(at),
        suffix,
        words,
        f" {suffix}" if suffix else "",
    )


@register.simple_tag
def at(moment: datetime | None) -> SafeString | str:
    """The time of day in UTC, the exact time on hover."""
    if moment is None:
        return "–"
    words = clock.short(moment, timezone.now())
    return format_html('<time datetime="{}" title="{}">{}</time>', clock.iso(moment), clock.exact(moment), words)


@register.filter
def number(value: Any) -> str:
    """A whole number in groups; a dash where it is unknown (templates give "" for what is absent)."""
    return "–" if value in (None, "") else f"{round(float(value)):,}"


@register.filter
def bold_numbers(text: str) -> SafeString:
    """A sentence of ours with its numbers in bold."""
    parts = NUMBERS.split(text)  # numbers and what stands between them take turns
    pairs = zip(parts[::2], [*parts[1::2], ""], strict=True)
    return format_html_join("", "{}{}", ((between, _bold(number)) for between, number in pairs))


def _bold(text: str) -> SafeString | str:
    return format_html("<b>{}</b>", text) if text else ""


@register.filter
def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f} %"


@register.filter
def duration(seconds: float | None) -> str:
    return "–" if seconds is None else clock.duration(seconds)


@register.filter
def of(table: Mapping[Any, Any] | str, key: Any) -> Any:
    """What a table has under a key, "" where it has nothing or the page has no such table."""
    return table.get(key, "") if isinstance(table, Mapping) else ""


@register.filter
def kind_word(kind: str) -> str:
    """A measurement's kind as two words."""
    return kind.replace("_", " ")


@register.filter
def reason(code: str) -> str:
    return title(code)


@register.filter
def runbook(code: str) -> str:
    """The address of a code's paragraph in the runbook."""
    return f"{reverse('help', args=['runbook'])}#{code.lower()}"


@register.simple_tag
def explain(code: str) -> SafeString:
    """A small link beside a reason or a problem: what it means and what to do."""
    words = f"What “{title(code)}” means and what to do"
    return format_html('<a class="explain" href="{}" title="{}" aria-label="{}">?</a>', runbook(code), words, words)


@register.simple_tag
def state_mark(state: str, unheard: str = "", sweep: int | str | None = None) -> SafeString:
    """Icon and word: never colour alone. `unheard`: what its host is, `silent` or `lost`, where it is not heard. `sweep`: the
    one that has it to itself, with a link there."""
    if sweep and state != "gone":
        word = "under test" if state == "ready" and not unheard else f"{unheard or state}, under test"
        mark, link = _mark("◎", "accent", word), reverse("sweep", args=[sweep])
        return format_html('<span>{} · <a href="{}">sweep →</a></span>', mark, link)
    if unheard and state != "gone":
        return _mark("○", "unknown", f"{unheard}, was {state}")
    return _mark(STATE_ICONS.get(state, "?"), STATE_LEVELS.get(state, "unknown"), state)


@register.simple_tag
def action_mark(state: str) -> SafeString:
    return _mark(ACTION_ICONS.get(state, "?"), ACTION_LEVELS.get(state, "unknown"), state)


def _mark(icon: str, level: str, word: str) -> SafeString:
    return format_html('<span class="mark {}"><i aria-hidden="true">{}</i> {}</span>', level, icon, word)


@register.simple_tag
def load_bar(share: float | None, threshold: float = 70, unknown: str = "no reading") -> SafeString:
    """A load from 0 to 120 % with the two ticks; hatched where unknown, an arrow where it leaves the bar."""
    ticks = _ticks(threshold)
    if share is None:
        return format_html('<span class="load"><svg class="bar hatched" {}>{}</svg> <span>{}</span></span>', SIZE, ticks, unknown)
    level = "bad" if share > 100 else "accent"
    return format_html(
        '<span class="load"><svg class="bar" {}><rect class="fill {}" width="{}" height="8" rx="3" y="3"/>'
        "{}</svg> <b>{}{}</b></span>",
        SIZE,
        level,
        round(min(share, BAR_END), 1),
        ticks,
        percent(share),
        " ▸" if share > BAR_END else "",
    )


SIZE = mark_safe('viewBox="0 0 120 14" width="120" height="14" preserveAspectRatio="none" aria-hidden="true"')


def _ticks(threshold: float) -> SafeString:
    return format_html(
        '<line class="tick warn" x1="{0}" x2="{0}" y1="0" y2="14"/><line class="tick bad" x1="100" x2="100" y1="0" y2="14"/>',
        round(threshold, 1),
    )


@register.simple_tag
def sparkline(points: Sequence[tuple[float, float | None]], threshold: float = 70) -> SafeString:
    """The last hour: (share of the hour 0–1, load %) → lines that break where unknown, under the same two levels."""
    if not points:
        return mark_safe('<span class="quiet">no samples</span>')
    path = " ".join(_path(points))
    return format_html(
        '<svg class="spark" viewBox="0 0 120 26" width="120" height="26" role="img" aria-label="{}">'
        '<line class="tick bad" x1="0" x2="120" y1="{}" y2="{}"/><line class="tick warn dashed" x1="0" x2="120" y1="{}" y2="{}"/>'
        '<path d="{}"/></svg>',
        _spark_words(points),
        *[_height(100)] * 2,
        *[_height(threshold)] * 2,
        path,
    )


def _spark_words(points: Sequence[tuple[float, float | None]]) -> str:
    known = [load for _, load in points if load is not None]
    return f"last hour: {min(known):.0f} to {max(known):.0f} %" if known else "last hour: no reading"


def _height(load: float) -> float:
    return round(25 - min(load, BAR_END) / BAR_END * 24, 1)


def _path(points: Sequence[tuple[float, float | None]]) -> list[str]:
    steps, pen_down = [], False
    for position, load in points:
        if load is not None:
            steps.append(f"{'L' if pen_down else 'M'}{position * 120:.1f} {_height(load)}")
        pen_down = load is not None
    return steps


@register.simple_tag(takes_context=True)
def query(context: dict[str, Any], **changes: Any) -> str:
    """This page's address with other parameters; None takes one out."""
    given: QueryDict = context["request"].GET.copy()
    for key in ("seen", "format", *[key for key, value in changes.items() if value is None]):
        given.pop(key, None)
    for key, value in changes.items():
        if value is not None:
            given[key] = str(value)
    return f"?{given.urlencode()}"


@register.simple_tag(takes_context=True)
def oob(context: dict[str, Any]) -> SafeString | str:
    """Marks a live part of the page when only the parts are asked for."""
    return mark_safe('hx-swap-oob="true"') if context["request"].htmx else ""


class _Compact(DjangoJSONEncoder):
    """No spaces between a thousand numbers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "separators": (",", ":")})


@register.filter
def figure_json(figure: dict[str, Any], element_id: str) -> SafeString:
    """A figure as a data block that the page's script reads."""
    return json_script(figure, element_id, encoder=_Compact)
