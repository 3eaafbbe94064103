"""Names of replicas."""

from __future__ import annotations

import secrets


def new_name(model: str) -> str:
    """Unique by chance, and readable: the model's name in plain letters."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in model).strip("-.")[:60] or "replica"
    return f"{plain.lower()}-{secrets.token_hex(4)}"
