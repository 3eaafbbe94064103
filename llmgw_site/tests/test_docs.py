"""The docs name everything that there is, and nothing that there is not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import get_commands
from django.urls import get_resolver

from capacity.domain.reasons import BRAKES, LIMITS, NOTICES, PROBLEMS, REASONS
from capacity.models import PoolSettings

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OURS = {"capacity", "quotas", "llmgw_site"}


def said(name: str) -> set[str]:
    """What stands in backticks on a page of the docs, each word and path of it by itself."""
    quoted = re.findall(r"`([^`\n]+)`", (ROOT / "docs" / name).read_text())
    return {word.strip(",.;()[]") for text in quoted for word in re.split(r"[\s=]+", text)} | set(quoted)


def api_paths(patterns: list, prefix: str = "") -> Iterator[str]:
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from api_paths(pattern.url_patterns, path)
        elif path.startswith("api/v1/") and path != "api/v1/":
            yield "/" + path


def test_every_environment_variable_is_explained():
    source = (ROOT / "llmgw_site" / "env.py").read_text()
    names = set(re.findall(r'env\.\w+\("([A-Z_]+)"', source))
    assert len(names) > 8
    assert names <= said("settings.md")
    assert {name for name in said("settings.md") if name.startswith("LLMGW_")} <= names


def test_every_setting_of_a_pool_is_explained():
    fields = {field.name for field in PoolSettings._meta.concrete_fields} - {"id", "pool"}
    assert fields <= said("settings.md")


@pytest.mark.parametrize("table", [REASONS, PROBLEMS, LIMITS, NOTICES, BRAKES])
def test_every_code_is_explained(table):
    assert set(table) <= said("reasons.md")


def paragraphs() -> dict[str, str]:
    """Heading → text of every paragraph of the runbook."""
    parts = re.split(r"^### (.+)$", (ROOT / "docs" / "runbook.md").read_text(), flags=re.MULTILINE)
    return {heading: re.split(r"^## ", text, flags=re.MULTILINE)[0].strip() for heading, text in batched(parts[1:])}


def batched(parts: list[str]) -> Iterator[tuple[str, str]]:
    return zip(parts[::2], parts[1::2], strict=True)


def alerts() -> set[str]:
    rules = ROOT / "docs" / "deploy" / "prometheus-rules.yml"
    return set(re.findall(r"- alert: (\w+)", rules.read_text()))


def test_the_runbook_has_a_paragraph_for_every_code_and_alert_and_none_is_left_over():
    headings = re.findall(r"^### (.+)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    assert len(headings) == len(set(headings))
    assert set(headings) == {*REASONS, *PROBLEMS, *LIMITS, *NOTICES, *BRAKES} | alerts()


@pytest.mark.parametrize(("heading", "text"), paragraphs().items(), ids=paragraphs())
def test_a_paragraph_of_the_runbook_says_what_it_is_where_to_look_what_to_do_and_when_to_worry(heading, text):
    assert "\n\n" not in text, f"{heading}: one paragraph"
    places = [text.find(mark) for mark in ("**See**", "**Do**", "**Worry**")]
    assert -1 not in places and places == sorted(places), f"{heading}: **See**, **Do**, **Worry**, in this order"
    word = next((table[heading] for table in (REASONS, PROBLEMS, LIMITS, NOTICES, BRAKES) if heading in table), None)
    assert word is None or text.startswith(f"**{word.title}.** "), f"{heading} begins with the words of the table"


def test_everything_that_needs_a_person_names_its_paragraph_of_the_runbook():
    sources = (ROOT / "capacity" / "views").glob("*.py")
    calls = [node for path in sources for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    items = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Item"]
    codes = [next((word.value for word in call.keywords if word.arg == "code"), None) for call in items]
    assert len(items) > 5
    assert None not in codes
    assert {code.value for code in codes if isinstance(code, ast.Constant)} <= {*REASONS, *PROBLEMS, *LIMITS, *NOTICES, *BRAKES}


def test_every_metric_is_explained_and_no_other():
    source = (ROOT / "capacity" / "exporter.py").read_text()
    metrics = set(re.findall(r'"(llmgw_[a-z_]+)"', source))
    assert metrics == {name for name in said("metrics.md") if re.fullmatch(r"llmgw_[a-z_]+", name)}


def test_every_command_is_explained_and_every_named_one_exists():
    ours = {name for name, app in get_commands().items() if app in OURS}
    named = {name for page in PAGES for name in re.findall(r"manage\.py ([a-z_]+)", page.read_text())}
    explained = set(re.findall(r"manage\.py ([a-z_]+)", (ROOT / "docs" / "commands.md").read_text()))
    assert ours <= explained
    assert named <= set(get_commands())


def test_every_address_of_the_api_is_explained():
    text = (ROOT / "docs" / "api.md").read_text().replace("/NAME", "/<path:name>").replace("/ID", "/<int:id>")
    for path in api_paths(get_resolver().url_patterns):
        assert re.sub(r"/<(int:id|path:name)>$", "", path) in text, path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_apps_are_those_that_the_docs_speak_of():
    assert {config.name for config in apps.get_app_configs()} >= OURS


def test_every_reason_on_a_page_links_to_its_paragraph():
    """A code that a template puts into words stands in a link to the runbook, or has the small link beside it."""
    for path in (ROOT / "templates").rglob("*.html"):
        text = path.read_text()
        for code in re.findall(r"\{\{ ([a-z_.]+)\|reason \}\}", text):
            assert f"{code}|runbook" in text or f"explain {code}" in text, f"{path.name}: {code}"
