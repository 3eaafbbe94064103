"""What is recognised and not importable is refused with what to do instead; what is broken, with the line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.bench.formats.contract import Unreadable
from capacity.bench.formats.opening import LARGEST, opened
from capacity.bench.formats.registry import read_file

REFUSED = {
    "| model | test | t/s |\n|---|---|---|\n| llama | pp128 | 318.49 ± 1.25 |\n": "call llama-bench with `-o json`",
    "log: first\n\n|  PP | S_TG t/s |\n|---|---|\n": "call llama-batched-bench with `--output-format jsonl`",
    "| a | b |\n| --- | --- |\n": "a table for people",
    "CREATE TABLE IF NOT EXISTS llama_bench (\n  build_commit TEXT,\n": "never run",
    "INSERT INTO llama_bench (a) VALUES ('1');\n": "never run",
    "<!DOCTYPE html>\n<html></html>\n": "import the JSON",
    "# HELP vllm:running Running\n# TYPE vllm:running gauge\nvllm:running 3\n": "metrics scraped",
    "MLPerf Results Summary\n======\n": "no level of concurrency",
    "apiVersion: apps/v1\nkind: Deployment\n": "Kubernetes manifest",
    "api:\n  type: completion\ndata:\n  type: mock\nload:\n  type: constant\n": "configuration",
    "elapsed_s,power_w,temp_c,gpu_util\n1,2,3,4\n": "GPU reported",
    "index, name, memory.total [MiB]\n0, NVIDIA L4, 23034 MiB\n": "list of GPUs",
    "A100,TTFT,,ITL\n,mean,p99,mean\n1,288.7,332.3,8\n": "made by hand",
    "Process Num,TTFT (ms)\n1,131\n": "no percentiles",
    "model,pp4096_tps,tg128_tps\nm,1,2\n": "-o json",
    '{"tputs": [[1]], "indexes": [[1], [1]], "gpu": "a"}': "AIBrix",
    '{"summary": {"endpoints_configured": []}, "metrics": {}}': "profile_export_aiperf.json",
    '{"metadata": {"x_request_id": "1"}, "metrics": {}}\n{"metadata": {"x_request_id": "2"}, "metrics": {}}\n': "single requests",
    '{"model": "m", "capacity_by_slo_ms": {}, "steps": []}': "each rate",
    '{"model": "m", "served_name": "m", "hardware": "x"}': "describes a run",
    '{"avg_latency": 1.0, "latencies": [1.0], "percentiles": {"50": 1.0}}': "vllm bench serve",
    "nothing, that, is\nknown, to, anyone\n": "Read are those of vLLM bench serve, GuideLLM",
    "": "is empty",
    " \n\n": "is empty",
    '{"benchmarks": [\n{"requests": {"successful": [\n1,\n2': "cut off in line 4",
    '{"a": 1,\n"b": tru': "cut off in line 2",
    '{"a": [1, 2],\n"b" 2,\n"c": 3}': "no JSON: line 2",
    '{"requests": [\n1,\n2\n],\n"b" 2,\n"c": 3}': "no JSON: line 5",
    "[" * 100: "nested deeper",
    '{"a": 1} NaN': "no JSON: line 1",
    "a,b\n1,2\n3,": "Read are those of",
    "a,b,c\n1,2,3\n4,5": "cut off in line 3",
}


def refusal(file: Path) -> str:
    with pytest.raises(Unreadable) as refused:
        read_file(file, file.name)
    return str(refused.value)


@pytest.mark.parametrize("content", REFUSED, ids=range(len(REFUSED)))
def test_a_file_is_refused_in_one_line_that_says_why(content: str, tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_text(content)
    said = refusal(file)
    assert REFUSED[content] in said
    assert "\n" not in said and said.endswith(".")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff\xfe{\x00}\x00", "UTF-16"),
        (b"PK\x03\x04\x00\x00", "binary"),
        (b'{"a": 1}' + b" " * 2**17 + b"\x00", "binary"),
        (b'{"requests": [\n\n],\n"b": "\xe4"}', "not UTF-8: line 4"),
    ],
)
def test_bytes_that_are_no_text_are_told_apart(content: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_bytes(content)
    assert says in refusal(file)


def test_a_file_above_the_limit_is_not_opened(tmp_path: Path) -> None:
    file = tmp_path / "given"
    with file.open("wb") as sparse:
        sparse.truncate(LARGEST + 1)
    assert "at most 256 MB" in refusal(file)


def test_nan_infinity_and_numbers_that_are_none_are_no_value(tmp_path: Path) -> None:
    row = '{"n_prompt": 0, "n_gen": 32, "avg_ts": %s, "avg_ns": NaN}'
    file = tmp_path / "given"
    for value in ("NaN", "-Infinity", "1e999", "9" * 5000):
        file.write_text(row % value)
        ((_, stage),) = read_file(file, "given").stages
        assert (stage.tokens_per_second, stage.seconds) == (None, None)


WORDS = st.sampled_from([*REFUSED, "\n", ",", '"', "{", "}", "[", "]", "|", ": ", "- ", "&a ", "*a", "\ufeff", "\\"])


@given(st.lists(WORDS, max_size=8).map("".join) | st.text(max_size=40))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any"
    file.write_text(content, errors="replace")
    try:
        read_file(file, "any")
    except Unreadable as refused:
        assert str(refused).endswith(".")


def test_prompts_and_answers_of_requests_do_not_stay_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_text(
        json.dumps({"generated_texts": ["a private answer"], "requests": {"successful": [{"prompt": "a private one"}]}})
    )
    assert "private" not in repr(opened(file, "given"))
