"""Commands as an operator calls them: one sentence for what is wrong, and nothing begun where there is no installation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from llmgw_site.installation import NEED_IT, NEED_NONE, lack
from quotas.command import OperatorCommand

ROOT = Path(__file__).resolve().parents[2]
OURS = sorted(name for name, app in get_commands().items() if app in ("capacity", "quotas"))


def manage(folder: Path, *arguments: str, text: str = "") -> tuple[int, str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "DJANGO_SETTINGS_MODULE")}
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT, env=kept | {"LLMGW_VAR": str(folder)}, input=text, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_of_each_command_it_is_known_whether_it_needs_an_installation():
    assert set(OURS) == NEED_IT | NEED_NONE
    assert not NEED_IT & NEED_NONE


@pytest.mark.parametrize("name", OURS)
def test_each_command_refuses_as_the_others_do(name):
    assert isinstance(load_command_class(get_commands()[name], name), OperatorCommand)


@pytest.mark.parametrize("arguments", [["reconcile", "--advise"], ["inventory", "-", "--node", "n1"]])
def test_without_an_installation_a_command_says_so_and_begins_none(tmp_path, arguments):
    folder = tmp_path / "var"
    sentence = f"There is no installation in {folder}: set LLMGW_VAR to its folder, or `make run` first.\n"
    assert manage(folder, *arguments) == (1, "", sentence)
    assert not folder.exists()


@pytest.mark.parametrize("argv", [[], ["help"], ["snapshot", "--help"], ["migrate"], ["inventory", "-"], ["plan", "-"]])
def test_what_needs_no_installation_runs_without_one(tmp_path, monkeypatch, argv):
    monkeypatch.setattr("llmgw_site.env.VAR", tmp_path)
    monkeypatch.setattr("llmgw_site.env.DATABASE_URL", "")
    assert lack(argv) is None
    assert lack(["snapshot"]) is not None
    monkeypatch.setattr("llmgw_site.env.DATABASE_URL", "postgres://elsewhere/llmgw")
    assert lack(["snapshot"]) is None


def test_a_database_without_tables_is_one_sentence(tmp_path):
    (tmp_path / "db.sqlite3").touch()
    status, out, error = manage(tmp_path, "snapshot")
    assert (status, out) == (1, "")
    assert error == (
        "The database does not do what was asked: no such table: quotas_pool. `manage.py prepare` brings it to this version.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["brake", "--nonsense"], "Unrecognized arguments: --nonsense."),
        (["up", "--nonsense"], "Unrecognized arguments: --nonsense."),
        (["model_mode", "chat"], "The following arguments are required: mode."),
        (["plan", "--nonsense"], "Unrecognized arguments: --nonsense."),
        (["plan", "-"], "$: stdin is empty."),
        (["bench_import", "f", "--\x1b[31m\n"], "Unrecognized arguments: --\\x1b[31m\\n."),
        (["bench_import", "f", "--reason", "a\udcff"], "Reason “a\\udcff” is not UTF-8."),
    ],
)
def test_a_wrong_call_ends_with_one_sentence_and_status_2(tmp_path, arguments, sentence):
    (tmp_path / "db.sqlite3").touch()
    assert manage(tmp_path, *arguments) == (2, "", f"{sentence}\n")
