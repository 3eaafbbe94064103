"""The docs as pages of the site: all of them, offline, without HTML of their own, for people who are signed in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.urls import reverse

from capacity.domain.reasons import LIMITS, NOTICES, PROBLEMS, REASONS
from capacity.templatetags.llmgw import runbook
from capacity.tests.pages import make_person
from llmgw_site import help

ROOT = Path(__file__).resolve().parents[2]
CODES = sorted({*REASONS, *PROBLEMS, *LIMITS, *NOTICES})


@pytest.fixture
def reader(client, db):
    client.force_login(make_person("reader"))
    return client


def ids_and_links(client, path: str) -> tuple[set[str], list[str]]:
    answer = client.get(path)
    assert answer.status_code == 200, path
    text = answer.content.decode()
    body = text[text.index("<article") : text.index("</article>")]
    return set(re.findall(r'id="([^"]+)"', body)), re.findall(r'(?:href|src)="([^"]*)"', body)


def test_every_code_of_the_tables_leads_to_its_paragraph(reader):
    ids, _ = ids_and_links(reader, "/help/runbook/")
    assert [code for code in CODES if runbook(code).partition("#")[2] not in ids] == []
    assert runbook("no_room") == "/help/runbook/#no_room"


@pytest.mark.parametrize("name", sorted(help.sources()))
def test_every_page_is_shown_and_each_of_its_links_leads_somewhere(reader, name):
    _, links = ids_and_links(reader, reverse("help", args=[name]))
    for link in links:
        if link.startswith(("http://", "https://")):
            continue
        path, _, fragment = link.partition("#")
        if path.startswith("/help/files/"):
            assert reader.get(path).status_code == 200
        elif path.startswith("/help/") or not path:
            ids, _ = ids_and_links(reader, path or reverse("help", args=[name]))
            assert not fragment or fragment in ids, link
        else:
            pytest.fail(f"{name} links to {link}")


def test_all_docs_are_pages():
    assert {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")} < set(
        help.sources()
    )


def test_the_first_page_is_the_readme_with_its_picture(reader):
    _, links = ids_and_links(reader, "/help/")
    picture = next(link for link in links if link.endswith(".png"))
    assert reader.get(picture)["Content-Type"] == "image/png"


def test_the_rail_leads_to_the_list_of_pages_that_begins_with_what_is_read_first(reader):
    text = reader.get("/").content.decode()
    assert '<li><a href="/help/">Help</a></li>' in text
    names = reader.get("/help/").context["names"]
    assert names[:4] == ["README", "concepts", "operations", "runbook"]
    first_choice = next(number for number, name in enumerate(names) if name.startswith("adr/"))
    assert all("/" in name for name in names[first_choice:])


HOSTILE = {
    "<script>alert(1)</script>": "<script",
    'a <img src=x onerror="alert(1)"> b': "<img",
    "[x](javascript:alert(1))": "href=",
    "[x](data:text/html;base64,PHNjcmlwdD4=)": "href=",
    "[x](vbscript:alert)": "href=",
    "![x](javascript:alert(1))": "src=",
    '## "><svg onload=alert(1)>': "<svg",
    "```\n</code></pre><script>\n```": "<script",
    "| a |\n|---|\n| <iframe src=x> |": "<iframe",
}


@pytest.mark.parametrize(("text", "never"), HOSTILE.items())
def test_no_html_of_a_page_passes(text, never):
    assert never not in help.rendered("hostile", text).body


@pytest.mark.parametrize("target", ["../../etc/passwd", "/etc/passwd", "../manage.py", "deploy/", "nothing.md", "//elsewhere"])
def test_a_link_to_what_is_not_shown_leads_to_the_first_page(target):
    assert help.address(target, "runbook") == "/help/"


@pytest.mark.parametrize(
    "path",
    [
        "/help/nothing/",
        "/help/../manage/",
        "/help/files/deploy/nothing.yml",
        "/help/files/../manage.py",
        "/help/files/runbook.md",
    ],
)
def test_what_is_not_there_is_404(reader, path):
    assert reader.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/help/", "/help/runbook/", "/help/files/images/model.png"])
def test_a_stranger_needs_a_login(client, db, path):
    assert client.get(path)["Location"].startswith("/login/")


def test_pages_ask_for_nothing_from_elsewhere(reader):
    text = reader.get("/help/runbook/").content.decode()
    assert not re.search(r'(?:src|href)="(?:https?:)?//', text.replace('href="https://keepachangelog', ""))
    assert "style=" not in text


def test_an_edited_page_is_shown_as_it_is_now(tmp_path, settings, reader):
    settings.BASE_DIR = tmp_path
    page = tmp_path / "docs" / "one.md"
    page.parent.mkdir()
    page.write_text("# One\n")
    assert "<h1" in reader.get("/help/one/").content.decode()
    page.write_text("# Other\n")
    assert "Other</h1>" in reader.get("/help/one/").content.decode()
