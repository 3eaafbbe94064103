"""NVIDIA product names → resource classes. The one table; what is not in it becomes gpu/<slug> and is listed as unknown."""

from __future__ import annotations

import re

# The first pattern found in the name wins, so the longer name of a family stands before the shorter.
_PRODUCTS: tuple[tuple[str, str], ...] = (
    ("GB300", "gb300"), ("GB200", "gb200"), ("B300", "b300"), ("B200", "b200"), ("B100", "b100"),
    ("GH200", "gh200"), ("H200", "h200"), ("H100", "h100"), ("H800", "h800"), ("H20", "h20"),
    ("A100", "a100"), ("A800", "a800"), ("A40", "a40"), ("A30", "a30"), ("A16", "a16"), ("A10G", "a10g"),
    ("A10", "a10"), ("A2", "a2"),
    ("L40S", "l40s"), ("L40", "l40"), ("L20", "l20"), ("L4", "l4"), ("L2", "l2"),
    ("V100S", "v100s"), ("V100", "v100"), ("T4", "t4"), ("P100", "p100"), ("P40", "p40"), ("P4", "p4"),
)  # fmt: skip
_PATTERNS = tuple((re.compile(rf"(?<![A-Za-z0-9]){name}(?![A-Za-z0-9])"), slug) for name, slug in _PRODUCTS)
_SLICE = re.compile(r"\bMIG (\d+c\.)?(\d+g\.\d+gb)((?:\+[\w.]+)*)", re.IGNORECASE)


def resource_of(product: str) -> tuple[str, bool]:
    """(class of a whole device, whether the product is known): "NVIDIA H100 80GB HBM3" → ("gpu/h100", True)."""
    for pattern, slug in _PATTERNS:
        if pattern.search(product):
            return f"gpu/{slug}", True
    return f"gpu/{_slug(product)}", False


def slice_resource_of(product: str, slice_name: str) -> str:
    """Class of a MIG slice, apart from the whole device: "… MIG 1g.5gb" of an A100 → "gpu/a100/mig-1g.5gb"."""
    found = _SLICE.search(slice_name)
    profile = "".join(part or "" for part in found.groups()) if found else _slug(slice_name)
    return f"{resource_of(product)[0]}/mig-{profile.lower().replace('+', '-')}"


def _slug(text: str) -> str:
    text = re.sub(r"(?i)^nvidia\s+", "", text)
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unknown"
