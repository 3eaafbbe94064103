"""`python -m llmgw_site.benchmarks`: measure in a state folder of its own, print a table, write `bench.json` below var/.

The person's database, Redis and settings are left alone: the environment names a fresh folder before settings are read.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def main() -> None:
    target = Path(os.environ.get("LLMGW_VAR", ROOT / "var")) / "bench.json"
    state = tempfile.mkdtemp(prefix="llmgw-bench-")
    try:
        prepare(state)
        bench(target)
    finally:
        shutil.rmtree(state, ignore_errors=True)


def prepare(state: str) -> None:
    """The product's own settings with SQLite in `state`, and its tables and static files made."""
    for name in [name for name in os.environ if name.startswith("LLMGW_") or name in {"DATABASE_URL", "REDIS_URL"}]:
        del os.environ[name]
    os.environ |= {
        "LLMGW_VAR": state,
        "LLMGW_LOG_LEVEL": "WARNING",
        "DJANGO_SETTINGS_MODULE": "llmgw_site.settings",
    }
    import django
    from django.core.management import call_command

    django.setup()
    call_command("collectstatic", verbosity=0, interactive=False)
    call_command("migrate", verbosity=0, interactive=False)


def bench(target: Path) -> None:
    from .report import table, write
    from .run import measure
    from .sizes import FULL

    figures = []
    for figure in measure(FULL):
        print(f"measured {figure.name}", file=sys.stderr, flush=True)  # noqa: T201
        figures.append(figure)
    print(table(figures))  # noqa: T201
    write(figures, target)
    print(f"written to {target}")  # noqa: T201


if __name__ == "__main__":
    main()
