"""A bad value in the environment stops the start with a sentence that names it, and shows no secret."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("LLMGW_PASS_SECONDS", "0", "Must be greater than or equal to 1 and less than or equal to 300."),
        ("LLMGW_SCRAPE_SECONDS", "61", "Must be greater than or equal to 1 and less than or equal to 60."),
        ("LLMGW_LOG_LEVEL", "LOUD", "Must be one of: DEBUG, INFO, WARNING, ERROR."),
        ("LLMGW_INSTALLATION_ID", "-x", "Letters, digits and . _ -"),
        ("LLMGW_PROMETHEUS_URL", "http://u:sesame@h", "The URL must not carry a user, a password, a query or a fragment."),
        ("LLMGW_PROMETHEUS_URL", "http://h/?token=sesame", "The URL must not carry a user, a password, a query or a fragment."),
        ("LLMGW_PROMETHEUS_URL", "prometheus:9090", "A URL starts with http:// or https:// and names a host."),
        ("LLMGW_PROMETHEUS_URL", "http://h:99999", "This is not a URL."),
        ("LLMGW_PROMETHEUS_TOKEN_FILE", "/nowhere/token", "There is no file that can be read."),
    ],
)
def test_a_bad_value_stops_the_start_with_a_sentence_that_names_it(name, value, sentence, tmp_path):
    command = [sys.executable, "-m", "llmgw_site.supervisor", "--no-demo"]
    environment = {"PATH": "/usr/bin:/bin", "LLMGW_VAR": str(tmp_path), name: value}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert name in ended.stderr
    assert sentence in ended.stderr
    assert "sesame" not in ended.stderr


def test_a_token_is_read_from_its_file(tmp_path):
    token = tmp_path / "token"
    token.write_text("sesame\n")
    code = "from llmgw_site.env import prometheus_token; print(prometheus_token())"
    environment = {"PATH": "/usr/bin:/bin", "LLMGW_PROMETHEUS_TOKEN_FILE": str(token), "LLMGW_PROMETHEUS_TOKEN": "other"}
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.stdout == "sesame\n"
