"""The shipped rules: valid, explained, on metrics that exist, and firing when they should, as Debian's promtool sees it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "docs" / "deploy" / "prometheus-rules.yml"
CASES = Path(__file__).with_name("prometheus_rules_test.yml")
PROMTOOL = shutil.which("promtool")

needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="Debian's package prometheus is not installed")


def promtool(*arguments: str) -> str:
    done = subprocess.run([PROMTOOL or "promtool", *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def alerts() -> dict[str, str]:
    """Name → the text of each alert."""
    parts = re.split(r"- alert: (\w+)", RULES.read_text())[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@needs_promtool
def test_the_rules_are_valid():
    assert f"{len(alerts())} rules found" in promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))


@needs_promtool
def test_each_alert_fires_when_it_should_and_only_then(tmp_path):
    cases = tmp_path / "cases.yml"
    cases.write_text(CASES.read_text().replace("[RULES]", f"[{RULES}]"))
    assert "SUCCESS" in promtool("test", "rules", str(cases))


@pytest.mark.parametrize("name", alerts())
def test_an_alert_is_tried_both_ways_and_links_to_its_own_paragraph(name):
    text = alerts()[name]
    assert f"runbook_url: https://llmgw.example.org/help/runbook/#{name.lower()}" in text
    assert "summary: " in text and "severity: " in text
    told = CASES.read_text()
    assert re.search(rf"alertname: {name}, exp_alerts: \[\]", told), "when it stays silent"
    assert re.search(rf"alertname: {name}\n", told), "when it fires"


def test_the_rules_ask_for_metrics_that_the_site_has():
    asked = {name for text in alerts().values() for name in re.findall(r"\bllmgw_[a-z_]+", text)}
    assert asked <= set(re.findall(r'"(llmgw_[a-z_]+)"', (ROOT / "capacity" / "exporter.py").read_text()))
