"""`manage.py read_metrics`: what is read of an engine, or the one sentence why not."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace

import pytest
from django.core.management import call_command

TEXT = """\
vllm:num_requests_running{model_name="base"} 8
vllm:num_requests_running{model_name="adapter"} 1200
vllm:num_requests_waiting{model_name="base"} 4
vllm:kv_cache_usage_perc{model_name="base"} 0.25
vllm:generation_tokens_total{model_name="base"} 11043
vllm:time_to_first_token_seconds_bucket{model_name="base",le="0.5"} 7
vllm:time_to_first_token_seconds_bucket{model_name="base",le="+Inf"} 9
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    stderr, status = io.StringIO(), 0
    try:
        call_command("read_metrics", *arguments, stderr=stderr)
    except SystemExit as error:
        status = int(error.code or 0)
    return status, capsys.readouterr().out, stderr.getvalue()


def saved(tmp_path, text: str) -> str:
    path = tmp_path / "metrics.txt"
    path.write_text(text)
    return str(path)


def test_what_is_read_is_a_line_each(tmp_path, capsys):
    status, out, err = run(capsys, saved(tmp_path, TEXT))
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "engine         vllm",
        "in flight      1,212 = 1,208 running + 4 waiting",
        "output tokens  11,043 (since its start)",
        "prompt tokens  unknown (since its start)",
        "prefix cache   unknown of unknown tokens (since its start)",
        "KV cache       25.0% (of its fullest rank 25.0%)",
        "ttft           9 counted in 1 buckets",
        "tpot           not counted",
        "e2e            not counted",
        "model          adapter: 1,200 in flight",
        "model          base: 12 in flight",
    ]


def test_for_programs_it_is_an_object(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(TEXT.encode())))
    status, out, _ = run(capsys, "-", "--json")
    assert status == 0
    assert json.loads(out) == {
        "engine": "vllm",
        "in_flight": 1212,
        "prefix_hits_total": None,
        "prefix_queries_total": None,
        "running": 1208,
        "waiting": 4,
        "output_tokens_total": 11043,
        "prompt_tokens_total": None,
        "kv_usage_mean": 0.25,
        "kv_usage_max": 0.25,
        "latencies": {"ttft": {"count": 9, "buckets": 1}},
        "models": {"adapter": 1200, "base": 12},
        "error": None,
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<html>", "Answered HTML instead of metrics."),
        ("up 1", "Answered without a known engine's metrics."),
        ("x" * (2 * 1024 * 1024 + 1), "It has more than 2097152 bytes."),
        (
            "vllm:num_requests_running NaN\nvllm:num_requests_waiting 0",
            "Its requests in flight are unknown: as a replica its load would be unknown too.",
        ),
    ],
)
def test_an_answer_that_gives_no_load_is_a_sentence_and_status_1(tmp_path, capsys, text, sentence):
    path = saved(tmp_path, text)
    status, _, err = run(capsys, path)
    assert (status, err) == (1, f"{sentence}\n")
    assert json.loads(run(capsys, path, "--json")[1])["error"] == sentence


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("/nowhere/at/all", "/nowhere/at/all cannot be read (No such file or directory)."),
        ("/", "/ cannot be read (Is a directory)."),
        ("a\0b", "a\0b cannot be read (not a path)."),
        ("http://169.254.169.254/", "The address 169.254.169.254 is refused: it is link-local."),
        ("HTTP://[::1", "Its URL is not valid."),
    ],
)
def test_what_cannot_be_read_is_a_sentence_and_status_1(capsys, source, sentence):
    assert run(capsys, source) == (1, "", f"{sentence}\n")


def test_an_engine_s_words_do_not_command_the_terminal(tmp_path, capsys):
    hostile = 'vllm:num_requests_running{model_name="\x1b[2Jm\\n"} 1\nvllm:num_requests_waiting 0\n'
    assert "model          �[2Jm�: 1 in flight" in run(capsys, saved(tmp_path, hostile))[1]
