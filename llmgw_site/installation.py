"""Commands of operators need an installation: where there is none, that is one sentence, and none is begun by accident."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from . import env

NEED_IT: Final = frozenset(
    {
        "bench", "brake", "end_rest", "endpoint_add", "endpoint_remove", "measurement_accept", "model_mode", "model_replacing",
        "model_retire", "model_target", "node_cordon", "reconcile", "role", "seed_demo", "snapshot", "take_over", "token_create",
    }
)  # fmt: skip
NEED_NONE: Final = frozenset({"bench_import", "engine", "gateway", "inventory", "node", "plan", "read_metrics"})
"""`inventory` needs one with --node alone, `bench_import` where it stores; `model_target` with --snapshot never comes
this far."""


def lack(argv: Sequence[str]) -> str | None:
    """Why the command line `argv` (without the program) cannot run here; None where it can. Reads and writes nothing."""
    if not argv or not needs_one(argv) or env.DATABASE_URL:
        return None
    folder = env.VAR.absolute()
    if (folder / "db.sqlite3").exists():
        return None
    return f"There is no installation in {folder}: set LLMGW_VAR to its folder, or `make run` first."


def needs_one(argv: Sequence[str]) -> bool:
    if "--help" in argv or "-h" in argv:
        return False
    return argv[0] in NEED_IT or (argv[0] == "inventory" and any(part.startswith("--node") for part in argv))
