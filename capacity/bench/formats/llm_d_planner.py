"""The table of the llm-d planner: rates of several models and hardware, times in ms. The public one is simulated and says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from capacity.bench.formats import values
from capacity.bench.formats.contract import Opened
from capacity.domain.measurement.types import Contents, Setting, Skipped, Stage

NAME: Final = "llm-d planner"

_KEPT_UP: Final = 0.95


def recognises(opened: Opened) -> bool:
    rows = _table(opened)
    return bool(rows) and isinstance(rows[0], Mapping) and "model_hf_repo" in rows[0] and "requests_per_second" in rows[0]


def read(opened: Opened) -> Contents:
    return values.contents(_rows(opened))


def _table(opened: Opened) -> list[Any]:
    if opened.shape == "object" and opened.documents:
        return values.entries(values.at(opened.documents[0], "benchmarks"))
    return list(opened.documents)


def _rows(opened: Opened) -> Iterator[values.Row]:
    simulated = opened.shape == "object" and _simulated(values.at(opened.documents[0], "_metadata"))
    for place, row in enumerate(_table(opened), start=1):
        where = f"{opened.where}, row {place}"
        if isinstance(row, Mapping):
            yield _setting(row), _stage(where, row, simulated)
        else:
            yield Skipped(where=where, why="it is no row of the table.")


def _simulated(about: Any) -> bool:
    said = " ".join(str(value) for value in about.values() if isinstance(value, str)) if isinstance(about, Mapping) else ""
    return any(word in said.lower() for word in ("simulat", "synthetic"))


def _stage(where: str, row: Mapping[str, Any], simulated: bool) -> Stage:
    answered = values.positive(row.get("responses_per_second"))
    latency = values.positive(row.get("e2e_mean"))
    kept = values.ratio(answered, values.positive(row.get("requests_per_second")))
    return Stage(
        where=where,
        mean_in_flight=values.positive(values.product(answered, latency, 1e-3)),
        tokens_per_second=values.positive(row.get("tokens_per_second")),
        ttft_ms=_ms(row, "ttft"),
        tpot_ms=_ms(row, "itl"),
        e2e_ms=_ms(row, "e2e"),
        flags=values.flags(None, simulated=simulated, not_steady=kept is not None and kept < _KEPT_UP),
    )


def _ms(row: Mapping[str, Any], name: str) -> dict[str, float]:
    return values.statistics(
        {str(key).removeprefix(f"{name}_"): value for key, value in row.items() if str(key).startswith(f"{name}_")}
    )


def _setting(row: Mapping[str, Any]) -> Setting:
    gpus, hardware = values.level(row.get("hardware_count")), values.text(row.get("hardware"))
    return Setting(
        tool=NAME,
        model=values.text(row.get("model_hf_repo")),
        engine=values.text(row.get("framework")),
        engine_version=values.text(row.get("framework_version")),
        hardware=f"{gpus}x{hardware}" if gpus and hardware else hardware,
        input_tokens=values.rounded(row.get("prompt_tokens")),
        output_tokens=values.rounded(row.get("output_tokens")),
        hints=values.hints(gpus=gpus),
    )
