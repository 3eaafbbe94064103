"""`nvidia-smi` as people paste it: its list (-L), its table, and its answer to --query-gpu as CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from capacity.domain.products import resource_of, slice_resource_of
from capacity.node.hardware.mig import profile_of
from capacity.node.hardware.reading import Device, Reading, Unreadable, mebibytes, one_host

# --- nvidia-smi -L ---------------------------------------------------------------------------------------------------
GPU_LINE = re.compile(r"GPU (\d{1,6}): (.{0,200}?) \(UUID: (\S{1,80})\)")
_MIG_LINE = re.compile(r"\s+MIG (\S{1,40})\s+Device\s+\d{1,4}: \(UUID: (\S{1,80})\)")


@dataclass(slots=True, kw_only=True)
class _Card:
    index: str
    product: str
    uuid: str = ""
    memory_mib: int | None = None
    mig: bool = False
    broken: bool = False
    slices: list[Device] = field(default_factory=list)

    def devices(self) -> list[Device]:
        """Its slices where it is cut, itself where not. Broken, or in MIG mode without known slices, it offers nothing."""
        units = 0 if self.mig or self.broken else 1
        whole = Device(
            id=self.uuid or self.index, product=self.product, resource=resource_of(self.product)[0], units=units,
            memory_mib=self.memory_mib,
        )  # fmt: skip
        return self.slices or [whole]


def read_list(text: str) -> Reading:
    """A line a device, and below it an indented line a MIG instance. Memory is not in it."""
    cards: list[_Card] = []
    warnings = []
    for number, line in enumerate(text.splitlines(), 1):
        if found := GPU_LINE.fullmatch(line.strip()):
            cards.append(_Card(index=found[1], product=found[2], uuid=found[3]))
        elif cards and (part := _MIG_LINE.fullmatch(line.rstrip())):
            product = cards[-1].product
            resource = slice_resource_of(product, f"MIG {part[1]}")
            cards[-1].slices.append(Device(id=part[2], product=product, resource=resource))
        elif line.strip():
            warnings.append(f"Line {number} is not understood and left out: {line.strip()[:80]!r}.")
    return one_host("nvidia-smi -L", (device for card in cards for device in card.devices()), warnings)


# --- the table -------------------------------------------------------------------------------------------------------
_ROW = re.compile(r"\|\s+(\d{1,4})\s+(\S.{0,80}?)\s+(?:On|Off|N/A)\s+\|\s+[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:")
_MEMORY = re.compile(r"(\d{1,10})MiB\s*/\s*(\d{1,10})MiB")
_MIG_ROW = re.compile(
    r"\|\s+(\d{1,4})\s+(\d{1,4})\s+(\d{1,4})\s+\d{1,4}\s+\|\s+\d{1,10}MiB\s*/\s*(\d{1,10})MiB\s+\|\s+(\d{1,5})\s"
)


def read_table(text: str) -> Reading:
    """Three lines a device: name, memory, MIG mode. Names that are longer than their column are cut by nvidia-smi itself."""
    cards: dict[str, _Card] = {}
    warnings: list[str] = []
    last = None
    for line in text.splitlines():
        if part := _MIG_ROW.match(line):
            _add_slice(cards, part, warnings)
        elif found := _ROW.match(line):
            last = cards[found[1]] = _Card(index=found[1], product=found[2])
        elif last is not None:
            last = _continued(last, line)
    for card in cards.values():
        if card.product.endswith("..."):
            warnings.append(f"GPU {card.index}: its name is cut in the table ({card.product}); nvidia-smi -L has it in full.")
        warnings.extend(_uncounted(card))
    if not cards:
        raise Unreadable("The table of nvidia-smi names no GPU, or is cut off above its first one.")
    return one_host("nvidia-smi (table)", (device for card in cards.values() for device in card.devices()), warnings)


def _continued(card: _Card, line: str) -> _Card | None:
    """The second and third line of a device; None behind its frame."""
    if not line.startswith("|"):
        return None
    if memory := _MEMORY.search(line):
        card.memory_mib = int(memory[2])
    elif line.rstrip("| ").endswith("Enabled"):
        card.mig = True
    return card


def _add_slice(cards: Mapping[str, _Card], part: re.Match[str], warnings: list[str]) -> None:
    index, gi, ci, memory, processors = part.groups()
    card = cards.get(index)
    if card is None:
        warnings.append(f"MIG instance {gi} is of GPU {index}, which the table does not have; it is left out.")
        return
    profile = profile_of(card.product, card.memory_mib, int(memory), int(processors))
    if profile is None:
        warnings.append(f"GPU {index}: the profile of instance {gi} cannot be told from {memory} MiB of {card.product}.")
    resource = slice_resource_of(card.product, f"MIG {profile or memory + 'mib'}")
    card.slices.append(Device(id=f"{index}/{gi}/{ci}", product=card.product, resource=resource, memory_mib=int(memory)))


def _uncounted(card: _Card) -> Iterator[str]:
    if card.broken:
        yield f"GPU {card.index} ({card.product or 'without a name'}) requires a reset: it offers nothing until then."
    if card.mig and not card.slices:
        yield (
            f"GPU {card.index} ({card.product}) is in MIG mode, and its instances are not in this text: it offers nothing here. "
            "Read nvidia-smi -L instead."
        )


# --- --query-gpu as CSV ----------------------------------------------------------------------------------------------
def read_csv(text: str) -> Reading:
    """A row a device under a header with `name`. Amounts may carry their unit in the cell or in the header; MIG instances
    are never in it."""
    rows = list(csv.reader(text.splitlines(), skipinitialspace=True))
    header = [cell.strip() for cell in rows[0]]
    columns = {re.sub(r"\s*\[.*\]$", "", cell): position for position, cell in enumerate(header)}
    if "name" not in columns:
        raise Unreadable("The CSV has no column “name”: ask nvidia-smi for --query-gpu=index,name,uuid,memory.total.")
    cards = [_card(number, row, header, columns) for number, row in enumerate(rows[1:], 2) if any(row)]
    if not cards:
        raise Unreadable("The CSV has a header and no row: it is cut off, or the host has no GPU.")
    warnings = [warning for card in cards for warning in _uncounted(card)]
    return one_host("nvidia-smi --query-gpu", _all(cards), [*warnings, *_said_count(rows, columns, len(cards))])


def _all(cards: Iterable[_Card]) -> Iterator[Device]:
    return (device for card in cards for device in card.devices())


def _card(number: int, row: list[str], header: list[str], columns: Mapping[str, int]) -> _Card:
    if len(row) != len(header):
        raise Unreadable(f"The CSV is cut off or broken in line {number}: {len(row)} of {len(header)} cells.")
    cells = {name: row[position].strip() for name, position in columns.items()}
    memory = cells.get("memory.total", "")
    if memory.isdigit() and "MiB" in header[columns["memory.total"]]:
        memory = f"{memory} MiB"
    return _Card(
        index=_value(cells.get("index")) or str(number - 2),
        product=_value(cells["name"]) or "",
        uuid=_value(cells.get("uuid")) or "",
        memory_mib=mebibytes(memory),
        mig=cells.get("mig.mode.current") == "Enabled",
        broken="[GPU requires reset]" in cells.values(),
    )


def _value(cell: str | None) -> str | None:
    """None for [N/A], [Not Supported], [GPU requires reset] and the like."""
    return None if not cell or (cell.startswith("[") and cell.endswith("]")) else cell


def _said_count(rows: list[list[str]], columns: Mapping[str, int], found: int) -> Iterator[str]:
    said = rows[1][columns["count"]].strip() if "count" in columns else ""
    if said.isascii() and said.isdigit() and int(said[:9]) != found:
        yield f"The CSV says that there are {said[:9]} GPUs and has {found} rows: the rows are counted."
