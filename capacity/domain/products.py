"""Product names → resource classes: the one table, for devices that drivers list, nodes of a cluster and typed-in classes.

One class a product, whatever its form: SXM, PCIe and NVL, 40 and 80 GB are all `gpu/h100` or `gpu/a100`. Hosts report the
full name in the label `gpu.product`, which a profile's selector can ask for. What is not in the table becomes `gpu/` and its
name in small letters, and is listed as unknown.
"""

from __future__ import annotations

import re
from functools import lru_cache

# The first pattern found in the name wins, so the longer name of a family stands before the shorter. Spaces, dashes and
# underscores are alike; a name of several words stands before one that is a part of it.
_WORDS: tuple[tuple[str, str], ...] = (
    # workstations: \1 is the number, with what belongs to it
    (r"RTX PRO (\d000)", r"rtx-pro-\1"),
    (r"RTX (\d000 SFF|\d\d00|5880) ADA", r"rtx-\1-ada"),
    (r"(?:QUADRO )?RTX A(\d\d00)", r"rtx-a\1"),
    (r"QUADRO RTX (\d000)", r"quadro-rtx-\1"),
    (r"GEFORCE RTX (\d0[5-9]0(?: TI| SUPER| D| LAPTOP GPU)*)", r"geforce-rtx-\1"),
    (r"TITAN (RTX|V|XP)", r"titan-\1"),
    # data centres
    ("GB300", "gb300"), ("GB200", "gb200"), ("GB10", "gb10"), ("B300", "b300"), ("B200", "b200"), ("B100", "b100"),
    ("GH200", "gh200"), ("H200", "h200"), ("H100", "h100"), ("H800", "h800"), ("H20", "h20"),
    ("A100X?", "a100"), ("A800", "a800"), ("A40", "a40"), ("A30X?", "a30"), ("A16", "a16"), ("A10G", "a10g"),
    ("A10M?", "a10"), ("A2", "a2"),
    ("L40S", "l40s"), ("L40G?", "l40"), ("L20", "l20"), ("L4", "l4"), ("L2", "l2"),
    ("V100S", "v100s"), (r"V100(?:M\d+)?", "v100"), ("T4G?", "t4"), ("P100", "p100"), ("P40", "p40"), ("P4", "p4"),
    ("K80", "k80"), ("M60", "m60"),
    # AMD
    (r"MI(355X|350X|325X|308X|300X|300A|250X|250|210|100|60|50|25)", r"mi\1"),
    (r"RADEON (?:AI )?PRO ([RVW]\d{4}(?: (?:GRE|XT))?)", r"radeon-pro-\1"),
    (r"RADEON RX (\d{4}(?: (?:XTX|XT|GRE))?)", r"radeon-rx-\1"),
)  # fmt: skip
_PATTERNS = tuple((re.compile(rf"(?<![A-Z0-9])(?:{pattern})(?![A-Z0-9])"), slug) for pattern, slug in _WORDS)

# AMD's node labels and `rocm-smi` may give no more than the PCI device id (virtual functions have one of their own).
_AMD_DEVICES = {
    "75a3": "MI355X", "75b3": "MI355X", "75a0": "MI350X", "75b0": "MI350X", "74a5": "MI325X", "74b9": "MI325X",
    "74a2": "MI308X", "74b6": "MI308X", "74a8": "MI308X", "74bc": "MI308X",
    "74a1": "MI300X", "74b5": "MI300X", "74a9": "MI300X", "74bd": "MI300X", "74a0": "MI300A",
    "7408": "MI250X", "740c": "MI250X", "740f": "MI210", "7410": "MI210", "738c": "MI100", "738e": "MI100",
}  # fmt: skip

_SLICE = re.compile(r"\bMIG[ -](\d+c\.)?(\d+g\.\d+gb)((?:[.+-](?:me|gfx)\w*)*)", re.IGNORECASE)
_SHARED = re.compile(r"-SHARED$", re.IGNORECASE)


@lru_cache(maxsize=1_024)
def resource_of(product: str) -> tuple[str, bool]:
    """(class of a whole device, whether the product is known): "NVIDIA H100 80GB HBM3" → ("gpu/h100", True)."""
    name = re.sub(r"[\s_-]+", " ", product[:300]).upper()
    for pattern, slug in _PATTERNS:
        if found := pattern.search(name):
            return f"gpu/{_slug(found.expand(slug))}", True
    return f"gpu/{_slug(product)}", False


def amd_product(device_id: str) -> str | None:
    """A PCI device id of AMD, as "0x74a1" → "AMD Instinct MI300X"; None where the table does not have it."""
    found = _AMD_DEVICES.get(device_id.lower().removeprefix("0x"))
    return f"AMD Instinct {found}" if found else None


def slice_resource_of(product: str, slice_name: str) -> str:
    """Class of a MIG slice, apart from the whole device: "… MIG 1g.5gb" of an A100 → "gpu/a100/mig-1g.5gb"."""
    found = _SLICE.search(slice_name)
    profile = "".join(part or "" for part in found.groups()) if found else _slug(re.sub(r"(?i)^mig[ -]", "", slice_name))
    return f"{resource_of(product)[0]}/mig-{re.sub(r'[+.-](?=me|gfx)', '-', profile.lower())}"


def partition_resource_of(product: str, mode: str) -> str:
    """Class of a part of an AMD device: "CPX, NPS4" of an MI300X → "gpu/mi300x/cpx-nps4". Mode SPX is the whole device."""
    whole, part = resource_of(product)[0], _slug(mode)
    return whole if part == "spx" or part.startswith("spx-") else f"{whole}/{part}"


def shared_resource_of(product: str, replicas: int) -> str:
    """Class of one of `replicas` turns on a time-sliced device, which has no memory of its own."""
    return f"{resource_of(_SHARED.sub('', product))[0]}/shared-{replicas}"


def is_slice(product: str) -> bool:
    """Whether a name is one of a MIG slice: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"."""
    return _SLICE.search(product) is not None


def is_shared(product: str) -> bool:
    """Whether a node label says that the device is given out in turns: "Tesla-T4-SHARED"."""
    return _SHARED.search(product) is not None


def canonical_class(resource: str) -> str | None:
    """The class by which hosts report a product that a typed-in class names in another way: gpu/h100-sxm → gpu/h100.

    None where it is written so already, or where the table does not know what it is."""
    segments = resource.split("/")
    if segments[0].lower() not in {"gpu", "nvidia", "amd"} or len(segments) < 2:
        return None
    whole, known = resource_of(segments[1])
    written = "/".join([whole, *segments[2:]]).lower().replace("+", "-")
    return written if known and written != resource else None


def _slug(text: str) -> str:
    text = re.sub(r"(?i)^nvidia[\s-]+", "", text[:300])
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:80].strip("-") or "unknown"
