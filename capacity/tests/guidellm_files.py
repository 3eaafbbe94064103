"""GuideLLM's files as each of its generations writes them, small."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from capacity.bench.formats import guidellm
from capacity.bench.formats.contract import Opened
from capacity.domain.measurement.types import Contents, Stage

PERCENTILES = {"p001": 1, "p01": 2, "p05": 3, "p10": 4, "p25": 5, "p75": 70, "p90": 90, "p95": 95, "p99": 99, "p999": 999}
EMPTY = {"mean": 0.0, "median": 0.0, "percentiles": dict.fromkeys(PERCENTILES, 0.0)}
CANARY = "sk-canary-0000"


def groups(scale: float, mean: float = 60.0) -> dict[str, Any]:
    """Successes as measured; the other groups hold what must never be taken."""
    found = {
        "mean": mean * scale,
        "median": 50 * scale,
        "percentiles": {name: value * scale for name, value in PERCENTILES.items()},
    }
    return {"successful": found, "errored": EMPTY, "incomplete": EMPTY, "total": {**found, "mean": 9e9}}


def _metrics(in_flight: float, rate: float) -> dict[str, Any]:
    return {
        "request_concurrency": groups(1, in_flight),
        "request_latency": groups(0.001),
        "time_to_first_token_ms": groups(1),
        "inter_token_latency_ms": groups(0.1),
        "time_per_output_token_ms": groups(7),
        "output_tokens_per_second": groups(1, rate),
        "tokens_per_second": groups(1, 3 * rate),
        "prompt_token_count": groups(1, 52.4),
        "output_token_count": groups(1, 31.7),
    }


def _early(strategy: Mapping[str, Any], counts: Mapping[str, int], in_flight: float = 4.8) -> dict[str, Any]:
    """≤ 0.3: everything below `args`, counts beside the metrics, the model in the worker."""
    return {
        "args": {"strategy": dict(strategy)},
        "run_stats": {"requests_made": {"successful": 9999, "errored": 9999}},
        "worker": {"backend_model": "org/m", "backend_target": f"http://{CANARY}"},
        "request_loader": {"data": '{"prompt_tokens":64,"output_tokens":32}'},
        "metrics": _metrics(in_flight, 300.0),
        "request_totals": dict(counts),
        "requests": {"successful": [{"prompt": CANARY}]},
        "duration": 40.0,
    }


def _later(strategy: Mapping[str, Any], counts: Mapping[str, int], in_flight: float = 4.8) -> dict[str, Any]:
    """≥ 0.4: `config`, counts within the metrics; `requests_made` also counts warm-up and what was cut."""
    return {
        "config": {"strategy": {"worker_count": 10, "max_concurrency": 10240, **strategy}, "backend": {"model": "org/m"}},
        "scheduler_metrics": {"requests_made": {"successful": 9999, "errored": 9999}},
        "metrics": {"request_totals": dict(counts), **_metrics(in_flight, 300.0)},
        "requests": {"successful": [{"request_args": CANARY}]},
        "duration": 40.0,
        "warmup_duration": 5.0,
    }


def spec(**more: Any) -> dict[str, Any]:
    backend = {"model": None, "api_key": CANARY, "target": f"http://{CANARY}"}
    return {"backend": backend, "data": [{"prompt_tokens": 64, "output_tokens": 32}], **more}


GENERATIONS = {
    "0.3": lambda items: {"benchmarks": [_early(*item) for item in items]},
    "0.4": lambda items: {
        "args": {"data": ["prompt_tokens=64,output_tokens=32"]},
        "benchmarks": [_later(*item) for item in items],
    },
    "0.5.4": lambda items: {
        "metadata": {"version": 1, "guidellm_version": "0.5.4"},
        "args": {"model": "org/m", "data": ["prompt_tokens=64,output_tokens=32"]},
        "benchmarks": [_later(*item) for item in items],
    },
    "0.8.1": lambda items: {
        "metadata": {"version": 2, "guidellm_version": "0.8.1"},
        "config": {"metadata": {"labels": {"replicas": 1}}, "spec": spec()},
        "benchmarks": [_later(*item) for item in items],
        "conclusions": [],
    },
}
COUNTS = {"successful": 57, "errored": 3, "incomplete": 4, "total": 64}


def concurrent(streams: int) -> dict[str, Any]:
    return {"type_": "concurrent", "streams": streams}


def read(document: Any, shape: str = "object") -> Contents:
    opened = Opened(where="run.json", shape=shape, documents=document if shape == "csv" else [document])  # type: ignore[arg-type]
    assert guidellm.recognises(opened)
    return guidellm.read(opened)


def stages(document: Any, shape: str = "object") -> list[Stage]:
    return [stage for _, stage in read(document, shape).stages]


def early_csv(rows: int = 1) -> list[list[str]]:
    order = "[min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]"
    columns = {"Name": "poisson@1.60", "Duration": "40.0", "Successful Requests": "57", "Errored Requests": "3"}
    columns["Incomplete Requests"] = "4"
    for name, scale in {"Request latency": 0.001, "Time to first token ms": 1.0, "Inter token latency ms": 0.1}.items():
        columns |= {f"Successful {name} mean": str(60 * scale), f"Successful {name} median": str(50 * scale)}
        columns[f"Successful {name} {order}"] = json.dumps([value * scale for value in (0, 1, 2, 3, 4, 5, 70, 90, 95, 99, 500)])
    columns |= {"Successful Request concurrency mean": "4.8", "Successful Output tokens per second mean": "300.0"}
    columns["Args"] = json.dumps({"strategy": {"type_": "poisson", "rate": 1.6}})
    columns["Worker"] = json.dumps({"backend_model": "org/m", "backend_target": CANARY})
    columns["Request Loader"] = json.dumps({"data": "prompt_tokens=64,output_tokens=32"})
    return [list(columns), *[list(columns.values())] * rows]


def later_csv(sizes: tuple[str, ...] = ("@2", "@4")) -> list[list[str]]:
    """As 0.8.1 writes it; a size of "" is what 0.5 writes, with the level in the profile."""
    profile = json.dumps({"completed_strategies": [{"streams": 2}, {"streams": 4}]})
    arguments = json.dumps({"spec": spec()})
    fixed = {
        ("Run Info", "Run ID", ""): "1",
        ("Run Info", "Run Index", ""): "0",
        ("Run Info", "Profile", ""): profile,
        ("Run Info", "Backend", ""): json.dumps({"model": "org/m", "api_key": CANARY}),
        ("Benchmark", "Strategy", ""): "concurrent",
        ("Timings", "Duration", "Sec"): "40.0",
        ("Request Counts", "Successful", ""): "57",
        ("Request Counts", "Incomplete", ""): "4",
        ("Request Counts", "Errored", ""): "3",
        ("Server Throughput", "Successful Concurrency", "Mean"): "4.8",
        ("Token Throughput", "Successful Output Tokens/Sec", "Mean"): "300.0",
        ("Runtime Info", "Metadata", ""): json.dumps({"guidellm_version": "0.8.1"}),
        ("Runtime Info", "Arguments", ""): arguments,
    }
    for group, metric, scale in (
        ("Request Latency", "Successful Sec", 0.001),
        ("Time to First Token", "Successful ms", 1.0),
        ("Inter Token Latency", "Successful ms", 0.1),
    ):
        listed = [0, *(value * scale for value in (1, 2, 3, 4, 5, 70, 90, 95, 99)), 500]
        fixed |= {(group, metric, "Mean"): str(60 * scale), (group, metric, "Median"): str(50 * scale)}
        fixed[(group, metric, "Percentiles")] = json.dumps(listed)
    rows = [
        list((fixed | {("Run Info", "Run Index", ""): str(place), ("Benchmark", "Strategy", ""): f"concurrent{size}"}).values())
        for place, size in enumerate(sizes)
    ]
    return [*(list(heading) for heading in zip(*fixed, strict=True)), *rows]
