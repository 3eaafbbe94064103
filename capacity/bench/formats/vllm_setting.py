"""What a run of vLLM's client was made with. The file names no GPU, no parallelism, no replicas and no version of the engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from capacity.bench.formats import values
from capacity.domain.measurement.types import Setting

TOOL: Final = "vllm bench serve"
_MOST_HINTS: Final = 40
_LONGEST: Final = 200
_NAMED: Final = ("client",)
# fmt: off
_KNOWN: Final = frozenset((
    "date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "request_rate", "burstiness",
    "ramp_up_strategy", "ramp_up_start_rps", "ramp_up_end_rps", "max_concurrency", "duration", "completed", "failed",
    "total_input_tokens", "total_output_tokens", "request_throughput", "request_goodput", "request_goodput:",
    "output_throughput", "total_token_throughput", "max_output_tokens_per_s", "max_concurrent_requests", "rtfx",
    "run_number", "best_of", "use_beam_search", "generated_texts", "errors", "input_lens", "output_lens", "ttfts", "itls",
))
# fmt: on
_OUTSIDE_TEXT: Final = ("key", "token", "secret", "password", "auth")
"""A word of a key whose text is shown to nobody."""
_OF_A_TABLE: Final = ("prefill", "decode", "gpu", "isl", "osl")
"""Columns that part the sweeps of one table."""


class TableRow(dict[str, str]):
    """A row of a table, by its heading."""


def setting(run: Mapping[str, Any], parting: Sequence[str] = ()) -> Setting:
    """`parting`: keys by which the runs of one file are apart (`parting_keys`)."""
    requests = values.positive(run.get("completed"))
    return Setting(
        tool=TOOL,
        model=values.text(run.get("model_id")),
        input_tokens=values.mean_length(run.get("total_input_tokens"), requests),
        output_tokens=values.mean_length(run.get("total_output_tokens"), requests),
        drawn=_is_drawn(run.get("total_input_tokens"), requests) or _is_drawn(run.get("total_output_tokens"), requests),
        variant=_variant(run, parting),
        hints=_hints(run),
    )


def parting_keys(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a person said of the runs of one file by `--metadata`, where it names groups of them: a deployment, a feature. What
    is different in each run, a time or a number, names no group."""
    said: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        for key in _said(run):
            said[key].append(str(run[key])[:_LONGEST])
    return [key for key, words in said.items() if 1 < len(set(words)) < len(words) == len(runs)]


def _is_drawn(total: Any, requests: float | None) -> bool:
    """Equal lengths leave no remainder."""
    found = values.count(total)
    return bool(found and requests and found % requests)


def _variant(run: Mapping[str, Any], parting: Sequence[str]) -> str | None:
    """Its label, speculative decoding, and in a sweep the options that each run was given: other engines, other sweeps."""
    parts = [values.text(run.get("label"))]
    if any(str(key).startswith("spec_decode_") for key in run):
        parts.append("speculative decoding")
    parts += [f"{key}={values.text(str(run[key]))}" for key in sorted({*_grid(run), *parting} & run.keys())]
    return ", ".join(part for part in parts if part) or None


def _grid(run: Mapping[str, Any]) -> list[str]:
    """Keys that `bench sweep` adds to each run; in a table those that part its sweeps."""
    if "run_number" in run:
        return [key for key in _unknown(run) if isinstance(run[key], int | str) and values.text(str(run[key]))]
    return [key for key in _OF_A_TABLE if run.get(key)] if isinstance(run, TableRow) else []


def _hints(run: Mapping[str, Any]) -> dict[str, str]:
    """What a person may have said by `--metadata`, all of it text."""
    usual = {"date": run.get("date"), "client": run.get("backend") or run.get("endpoint_type")}
    return values.hints(**{key: run[key] for key in _said(run)[:_MOST_HINTS]}, **usual)


def _said(run: Mapping[str, Any]) -> list[str]:
    return [key for key in _unknown(run) if isinstance(run[key], str) and key not in _NAMED and not _is_secret(key)]


def _unknown(run: Mapping[str, Any]) -> list[str]:
    return [key for key in run if key not in _KNOWN and not key.endswith("_ms") and not key.startswith("spec_decode_")]


def _is_secret(key: str) -> bool:
    return any(word in key.lower() for word in _OUTSIDE_TEXT)
