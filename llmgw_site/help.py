"""The docs as pages of the site, offline: written in Markdown, shown without any HTML of their own."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

# what lies beside the pages and is linked from them
FILES: Final = {".yml": "text/plain; charset=utf-8", ".service": "text/plain; charset=utf-8", ".png": "image/png"}
FIRST: Final = ("README", "concepts", "operations", "runbook")
OUTSIDE: Final = ("README.md", "CHANGELOG.md")
RENDERER: Final = MarkdownIt("commonmark", {"html": False}).enable("table")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of the docs. `name`: its place below docs/ without ending, as its address has it."""

    name: str
    title: str
    body: SafeString


def help_page(request: HttpRequest, name: str = "README") -> HttpResponse:
    """One page of the docs; the README is the first. 404 where there is none."""
    source = sources().get(name)
    if source is None:
        raise Http404
    page = page_of(name, source.stat().st_mtime_ns)
    return render(request, "pages/help.html", {"page": page, "place": "help", "names": sorted(sources(), key=place)})


def help_file(request: HttpRequest, name: str) -> HttpResponse:
    """A file that a page links to: a unit, rules, a picture. Never anything outside docs/."""
    path = files().get(name)
    if path is None:
        raise Http404
    return HttpResponse(path.read_bytes(), content_type=FILES[path.suffix])


def sources() -> dict[str, Path]:
    """Name → file of every page: what lies below docs/ now, and the two beside it."""
    docs = settings.BASE_DIR / "docs"
    found = {path.relative_to(docs).with_suffix("").as_posix(): path for path in docs.rglob("*.md")}
    return found | {path.removesuffix(".md"): settings.BASE_DIR / path for path in OUTSIDE}


def files() -> dict[str, Path]:
    docs = settings.BASE_DIR / "docs"
    return {path.relative_to(docs).as_posix(): path for path in docs.rglob("*") if path.suffix in FILES}


@lru_cache(maxsize=128)
def page_of(name: str, changed_ns: int) -> Page:
    """A page, rendered once for each time that its file was changed."""
    return rendered(name, sources()[name].read_text())


def rendered(name: str, text: str) -> Page:
    """Markdown → a page: an id at each heading, links of the docs led to the site's own addresses."""
    tokens = RENDERER.parse(text)
    title = name
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor(words(inline)))
            title = words(inline) if token.tag == "h1" else title
    for token in tokens:
        lead(token.children or [], name)
    return Page(name=name, title=title, body=mark_safe(RENDERER.renderer.render(tokens, RENDERER.options, {})))  # noqa: S308


def place(name: str) -> tuple[bool, int, str]:
    """What a newcomer reads and what an alert asks for first, choices last, by letter between."""
    return "/" in name, FIRST.index(name) if name in FIRST else len(FIRST), name.lower()


def words(inline: Token) -> str:
    return "".join(child.content for child in inline.children or [])


def anchor(heading: str) -> str:
    """The id of a heading as GitHub makes it: small letters, no punctuation, - for spaces."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def lead(tokens: list[Token], name: str) -> None:
    for token in tokens:
        for attribute in {"link_open": ["href"], "image": ["src"]}.get(token.type, []):
            token.attrSet(attribute, address(str(token.attrGet(attribute)), name))


def address(target: str, name: str) -> str:
    """Where a link of a page leads on the site; what lies neither below docs/ nor on another site leads to the first page."""
    path, mark, fragment = target.partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return target
    folder = "" if f"{name}.md" in OUTSIDE else f"docs/{posixpath.dirname(name)}"
    found = posixpath.normpath(posixpath.join(folder, path)).removeprefix("docs/")
    if found in files():
        return reverse("help_file", args=[found])
    page = found.removesuffix(".md")
    return (reverse("help", args=[page]) if page in sources() else reverse("help_index")) + mark + fragment
