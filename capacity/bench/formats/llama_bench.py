"""llama.cpp's llama-bench (`-o json`, `jsonl`, `csv`): one sequence at a time, tokens a second and no latency.

It can name no concurrency within an SLO; what it says of output tokens is kept as the one level that it ran at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from capacity.bench.formats import values
from capacity.bench.formats.contract import Opened
from capacity.domain.measurement.types import Contents, Setting, Skipped, Stage

NAME: Final = "llama-bench"

_KEYS: Final = ("n_prompt", "n_gen", "avg_ts")
_APART: Final = ("n_depth", "n_batch", "n_ubatch", "n_threads", "n_gpu_layers", "split_mode", "flash_attn", "type_k", "type_v")
_DISTURBED: Final = 0.2
_NANOSECONDS: Final = 1e9


def recognises(opened: Opened) -> bool:
    first = opened.documents[0] if opened.documents else None
    return isinstance(first, list if opened.shape == "csv" else Mapping) and all(key in first for key in _KEYS)


def read(opened: Opened) -> Contents:
    """A stage at level 1 for each test that generates; tests that only read a prompt are skipped."""
    return values.contents(_row(f"{opened.where}, test {place}", test) for place, test in enumerate(_tests(opened), 1))


def _tests(opened: Opened) -> Iterable[Any]:
    if opened.shape != "csv":
        return opened.documents
    return (dict(zip(opened.documents[0], row, strict=False)) for row in opened.documents[1:] if any(row))


def _row(where: str, test: Any) -> values.Row:
    if not isinstance(test, Mapping) or any(key not in test for key in _KEYS):
        return Skipped(where=where, why=f"it is no test of {NAME}.")
    generated = values.count(test.get("n_gen"))
    if not generated:
        return Skipped(where=where, why="it only reads a prompt and generates nothing, so it says nothing of output tokens.")
    seconds = values.ratio(values.positive(test.get("avg_ns")), _NANOSECONDS)
    stage = Stage(
        where=where,
        asked=1,
        seconds=seconds,
        tokens_per_second=_output_rate(test, generated, seconds),
        flags=values.flags(None, weak=_disturbed(test)),
    )
    return _setting(test), stage


def _output_rate(test: Mapping[str, Any], generated: int, seconds: float | None) -> float | None:
    """Where a test also reads a prompt, its own rate counts the prompt's tokens."""
    return values.ratio(generated, seconds) if values.count(test.get("n_prompt")) else values.positive(test.get("avg_ts"))


def _disturbed(test: Mapping[str, Any]) -> bool:
    spread = values.ratio(values.amount(test.get("stddev_ts")), values.positive(test.get("avg_ts")))
    return spread is not None and spread > _DISTURBED


def _setting(test: Mapping[str, Any]) -> Setting:
    prompt, depth = values.count(test.get("n_prompt")), values.count(test.get("n_depth"))
    named = values.text(test.get("model_type")) or values.text(test.get("model_filename"))
    return Setting(
        tool=NAME,
        model=PurePosixPath(named).name if named else None,
        engine="llama.cpp",
        engine_version=values.text(str(test.get("build_commit") or "")),
        hardware=values.text(test.get("gpu_info")) or values.text(test.get("cpu_info")),
        input_tokens=None if prompt is None else (prompt + (depth or 0)) or None,
        output_tokens=values.count(test.get("n_gen")),
        variant=", ".join(f"{key} {shown}" for key, shown in values.hints(**{key: test.get(key) for key in _APART}).items())
        or None,
        hints=values.hints(backends=values.text(test.get("backends")), began=values.text(test.get("test_time"))),
    )
