"""`manage.py plan`: exit statuses, one line a fault, lines in and lines out, and the table for people."""

from __future__ import annotations

import json
import subprocess
import sys
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from capacity.domain import loads, parse_snapshot, plan, plan_json
from capacity.domain.plan_table import table
from capacity.plan_file import run
from capacity.tests.builders import Document, fleet, model, ready, replica, snapshot

ROOT = Path(__file__).resolve().parents[2]


def ask(text: bytes, *argv: str) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    return run(argv, BytesIO(text), out, err), out.getvalue(), err.getvalue()


def encoded(document: Document) -> bytes:
    return json.dumps(document).encode()


def test_json_is_the_plan_document() -> None:
    document = fleet(ready(11))
    status, out, err = ask(encoded(document), "-", "--format", "json")
    assert (status, err) == (0, "")
    assert json.loads(out) == plan_json(document)


def test_an_invalid_snapshot_is_a_line_a_fault_and_no_plan() -> None:
    document = snapshot(models=[model(min_replicas=4, max_replicas=2), model("b", mode="x")])
    status, out, err = ask(encoded(document), "--format", "json")
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        'models[1].mode: "x" is not one of auto, advise, paused, add_only',
        "models[0].max_replicas: 2 is below min_replicas 4",
    ]


@pytest.mark.parametrize("text", [b"", b"nope", b"\xff", b'{"a"'])
def test_text_that_is_no_json_is_named_at_the_root(text: bytes) -> None:
    status, out, err = ask(text)
    assert (status, out) == (2, "")
    assert err.startswith("$: ")
    assert len(err.splitlines()) == 1


def test_a_file_is_read_and_one_that_cannot_be_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_bytes(encoded(fleet(ready(1))))
    assert ask(b"", str(tmp_path / "s.json"))[0] == 0
    status, out, err = ask(b"", str(tmp_path / "gone.json"))
    assert (status, out) == (2, "")
    assert err == f"{tmp_path / 'gone.json'}: No such file or directory\n"


class Flushed(StringIO):
    """Remembers what stood there at each flush."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def flush(self) -> None:
        self.seen.append(self.getvalue())


def test_lines_in_are_lines_out_in_order_each_flushed_and_nothing_carries_over() -> None:
    documents = [fleet(ready(11)), snapshot(models=[model(max_replicas=0)]), fleet(ready(1, 1)), fleet(ready(11))]
    lines = [encoded(document) for document in documents]
    lines.insert(1, b"nope")
    out = Flushed()
    assert run(["-", "--format", "json", "--lines"], BytesIO(b"\n".join(lines)), out, StringIO()) == 0
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(out.seen) == len(lines)
    assert [text.count("\n") for text in out.seen] == [1, 2, 3, 4, 5]
    assert found[0] == found[4] == plan_json(documents[0])
    assert (found[1]["format"], found[1]["faults"][0]["path"]) == ("llmgw.fault/1", "$")
    assert found[2] == {
        "format": "llmgw.fault/1",
        "faults": [{"path": "models[0].max_replicas", "message": "0 is below min_replicas 1"}],
    }


def test_no_lines_in_are_no_lines_out() -> None:
    assert ask(b"", "-", "--format", "json", "--lines") == (0, "", "")


def test_a_reader_that_leaves_is_no_error() -> None:
    class Closed(StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    assert run(["-", "--lines"], BytesIO(b"{}\n"), Closed(), StringIO()) == 0


def test_a_stream_of_few_characters_gets_the_rest_escaped() -> None:
    raw = BytesIO()
    out = TextIOWrapper(raw, encoding="ascii")
    assert run(["-"], BytesIO(encoded(fleet([replica("r→1")]))), out, StringIO()) == 0
    out.flush()
    assert b"\\u2013" in raw.getvalue()


def test_the_table_names_models_actions_and_problems_in_columns() -> None:
    text = table(plan(parse_snapshot(fleet([*ready(14, 9), replica("lost", nodes=["gone"], in_flight=0)]))))
    lines = text.splitlines()
    assert lines[0] == "Plan at 2026-11-30T12:00:00Z: 1 model, 0 actions, 3 problems"
    head = next(line for line in lines if line.startswith("MODEL"))
    row = next(line for line in lines if line.startswith("chat"))
    assert row[head.index("WHY") :].startswith("The rest would be too busy. Without ")
    assert row[head.index("DEMAND") :].startswith("23")
    assert any("its node gone is not listed" in line for line in lines)


def test_a_name_with_control_characters_keeps_to_its_line() -> None:
    text = table(plan(parse_snapshot(fleet(models=[model("a\n\x1b[31mb")], profiles=[], measurements=[]))))
    assert "a\\n\\x1b[31mb" in text


def test_an_empty_snapshot_has_an_empty_plan() -> None:
    assert ask(encoded(snapshot()))[1] == "Plan at 2026-11-30T12:00:00Z: 0 models, 0 actions, 0 problems\n"


def test_the_command_of_the_site_is_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_bytes(encoded(fleet(ready(11))))
    bad.write_bytes(b"nope")
    call_command("plan", str(good), "--format", "json")
    assert json.loads(capsys.readouterr().out) == plan_json(fleet(ready(11)))
    with pytest.raises(SystemExit) as ended:
        call_command("plan", str(bad))
    assert ended.value.code == 2


def test_manage_py_needs_neither_settings_nor_environment() -> None:
    command: list[Any] = [sys.executable, "manage.py", "plan", "-", "--format", "json"]
    done = subprocess.run(command, cwd=ROOT, input=encoded(fleet(ready(11))), capture_output=True, env={}, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert loads(done.stdout) == plan_json(fleet(ready(11)))
