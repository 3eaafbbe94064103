"""`rocm-smi … --json`: a key cardN a device; names differ by version, every number is text. And who uses which device."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from capacity.domain.products import amd_product, partition_resource_of, resource_of
from capacity.node.hardware.reading import Device, Reading, Unreadable, mebibytes, one_host

CARD = re.compile(r"card(\d{1,5})")
_NAMES = ("Card Series", "Card series", "Card Model", "Card model")
_PID_LINE = re.compile(r"PID (\d{1,10}) is using \d+ DRM device\(s\)(?::\s*([\d ]*))?")


def read(document: Mapping[str, Any]) -> Reading:
    """Devices by their number; "system" is none. A card in another mode than SPX is parts, each a card of its own here."""
    warnings: list[str] = []
    ids = ids_of(document)
    devices = [_device(ids[number], number, card, warnings) for number, card in _cards(document)]
    if not devices:
        raise Unreadable("The JSON of rocm-smi names no card that can be read.")
    return one_host("rocm-smi --json", devices, warnings)


def _cards(document: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    found = [(int(name[1]), card) for key, card in document.items() if (name := CARD.fullmatch(key)) and isinstance(card, dict)]
    yield from sorted(found, key=lambda pair: pair[0])


def ids_of(document: Mapping[str, Any]) -> dict[int, str]:
    """Card number → what ROCR_VISIBLE_DEVICES understands behind "amd:": GPU-<unique id>, or the number where there is none, or
    where several cards have the same one, as the partitions of a device do."""
    unique = {number: _unique_id(card) for number, card in _cards(document)}
    times = Counter(unique.values())
    return {number: f"amd:GPU-{one}" if one and times[one] == 1 else f"amd:{number}" for number, one in unique.items()}


def _device(own_id: str, number: int, card: Mapping[str, Any], warnings: list[str]) -> Device:
    product = product_of(card)
    mode = _said(card, "Compute Partition") or "SPX"
    memory = mebibytes(f"{card.get('VRAM Total Memory (B)')} B")
    if memory is None:
        warnings.append(f"card{number}: its memory is not in this answer (ask with --showmeminfo vram); it is unknown.")
    if mode.upper() != "SPX":
        warnings.append(f"card{number} is a part of a device in mode {mode}, and no whole {product or 'device'}.")
    resource = partition_resource_of(product, mode) if mode.upper() != "SPX" else resource_of(product)[0]
    return Device(id=own_id, product=product, resource=resource, memory_mib=memory)


def product_of(card: Mapping[str, Any]) -> str:
    """The first name that the table knows, else by the PCI device id, else the first name that is more than a number."""
    names = [name for key in _NAMES if (name := _said(card, key))]
    known = next((name for name in names if resource_of(name)[1]), None)
    by_id = amd_product(_said(card, "Device ID") or "") or next((p for name in names if (p := amd_product(name))), None)
    return known or by_id or next((name for name in names if not name.lower().startswith("0x")), "")


def _unique_id(card: Mapping[str, Any]) -> str:
    text = (_said(card, "Unique ID") or "").lower().removeprefix("0x")
    return text if re.fullmatch(r"[0-9a-f]{1,16}", text) and int(text, 16) else ""


def _said(card: Mapping[str, Any], key: str) -> str | None:
    value = card.get(key)
    return value.strip() if isinstance(value, str) and value.strip() not in {"", "N/A", "None"} else None


def holders(text: str) -> dict[int, tuple[int, ...]]:
    """`rocm-smi --showpidgpus`: card number → pids that use it. The numbers stand on the line, or on the next one."""
    pids: dict[int, list[int]] = {}
    for pid, cards in _PID_LINE.findall(text):
        for card in cards.split():
            pids.setdefault(int(card[:6]), []).append(int(pid))
    return {card: tuple(sorted(found)) for card, found in pids.items()}
