"""What is recognised and holds no level of load with latencies: one sentence each that says what to import instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from capacity.bench.formats.contract import Opened

_OWN_TABLE: Final = "another script made this table; import the result files that the tool itself wrote"

_LINES: Final = (
    (
        re.compile(r"\bINTO llama_bench\b|\bEXISTS llama_bench\b"),
        "it is SQL, which is never run; call llama-bench with `-o json`.",
    ),
    (re.compile(r"^\|.*\bS_TG t/s"), "it is a table for people; call llama-batched-bench with `--output-format jsonl`."),
    (re.compile(r"^\|.*\bt/s\b"), "it is a table for people; call llama-bench with `-o json`."),
    (re.compile(r"^\s*<(?:!doctype|html|\?xml)", re.IGNORECASE), "it is a page or XML; import the JSON that it was made from."),
    (
        re.compile(r"^# (?:HELP|TYPE) "),
        "it holds metrics scraped from a server, which say what it does now and not what it can serve.",
    ),
    (re.compile(r"^MLPerf Results Summary"), "MLPerf's batches are no level of concurrency; run one of the tools that are read."),
    (re.compile(r"^\s*\|?\s*:?-{3,}:?\s*\|"), "it is a table for people; import the JSON that the tool writes."),
)

Test = Callable[[Mapping[str, Any]], bool]


def _has(*keys: str) -> Test:
    return lambda document: all(key in document for key in keys)


_DOCUMENTS: Final[tuple[tuple[Test, str], ...]] = (
    (
        _has("tputs", "indexes"),
        "an AIBrix profile holds requests a second under an SLO and no concurrency; import the runs that it was made from.",
    ),
    (
        lambda document: "endpoints_configured" in _inside(document, "summary"),
        "it holds what AIPerf scraped from the server; import the profile_export_aiperf.json beside it.",
    ),
    (
        lambda document: "x_request_id" in _inside(document, "metadata"),
        "it holds AIPerf's single requests; import the profile_export_aiperf.json beside it.",
    ),
    (_has("capacity_by_slo_ms"), "another script made this summary; import the result file of each rate that lies beside it."),
    (_has("by_profile"), "another script made this summary, and it names no throughput; import the tool's own result files."),
    (_has("served_name", "hardware"), "it describes a run; import the result files that lie beside it."),
    (_has("hostname", "kernel"), "it describes a host; import the result files that lie beside it."),
    (_has("apiVersion", "kind"), "it is a Kubernetes manifest, which says what was deployed and not what that served."),
    (_has("api", "data", "load"), "it is the configuration of a load generator; import the reports that it wrote."),
)

_TABLES: Final[tuple[tuple[frozenset[str], str], ...]] = (
    (frozenset({"process num", "ttft (ms)"}), f"{_OWN_TABLE}: it has means and no percentiles."),
    (frozenset({"parallel", "mean ttft (ms)"}), f"{_OWN_TABLE}: it has means, and a throughput that may be of one stream."),
    (frozenset({"pp4096_tps", "tg128_tps"}), "another script made this table from llama-bench; call llama-bench with `-o json`."),
    (frozenset({"power_w", "gpu_util"}), "it holds what a GPU reported over time, which says nothing of requests."),
    (frozenset({"index", "name"}), "it is nvidia-smi's list of GPUs, which says nothing of requests."),
)

_BY_HAND: Final = (
    "it is a table made by hand: it names no throughput, no errors and no level; import the result files that the tool wrote."
)
_FIRST_ROWS: Final = 3


def reason(opened: Opened) -> str | None:
    """Why the file is not imported; None where it is nothing that is known."""
    if opened.shape == "text":
        return next((said for line in opened.documents for pattern, said in _LINES if pattern.search(line)), None)
    if opened.shape == "csv":
        return _of_table(opened)
    first = opened.documents[0] if opened.documents else None
    return _of_document(first) if isinstance(first, Mapping) else None


def _of_document(document: Mapping[str, Any]) -> str | None:
    return next((said for test, said in _DOCUMENTS if test(document)), None)


def _of_table(opened: Opened) -> str | None:
    headings = {str(cell).strip().lower() for cell in (opened.documents[0] if opened.documents else ())}
    known = next((said for names, said in _TABLES if names <= headings), None)
    return known or (_BY_HAND if _is_by_hand(opened) else None)


def _is_by_hand(opened: Opened) -> bool:
    """Its first rows name a latency in a cell of its own."""
    words = {str(cell).strip().upper() for row in opened.documents[:_FIRST_ROWS] for cell in row}
    return bool(words & {"TTFT", "ITL", "TPOT"})


def _inside(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = document.get(key)
    return found if isinstance(found, Mapping) else {}
