"""Hardware as tools print it → devices and classes. Which tool it was is told by the content. Nothing is run or asked here."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from typing import Any

import yaml

from capacity.node.hardware import exporters, kubernetes, nvidia_text, nvidia_xml, rocm
from capacity.node.hardware.reading import Device, Host, Reading, Unreadable

__all__ = ["MOST_BYTES", "Device", "Host", "Reading", "Unreadable", "read"]

MOST_BYTES = 50_000_000
FORMS = (
    "nvidia-smi (-q -x, --query-gpu as CSV with its header, -L, or its table), rocm-smi --showallinfo --json, "
    "kubectl get nodes -o json or yaml, DCGM exporter, nvidia_gpu_exporter"
)


def read(content: bytes) -> Reading:
    """Devices, classes and warnings; `Unreadable` with one sentence for what is none of FORMS, broken, or 50 MB and more."""
    text = _text(content)
    most, form = next(((most, reader) for fits, most, reader in _READERS if fits(text)), (0, None))
    if form is None:
        raise Unreadable(f"This is none of the forms that are read: {FORMS}.")
    if len(content) > most:
        raise Unreadable(f"It has {len(content)} bytes; no such answer has {most // 1_000_000} MB. Nodes are read from -o json.")
    try:
        return form(text)
    except (RecursionError, MemoryError):
        raise Unreadable("It is nested deeper than any real answer.") from None
    except csv.Error as error:
        raise Unreadable(f"The CSV is broken: {error}.") from error


def _text(content: bytes) -> str:
    if len(content) >= MOST_BYTES:
        raise Unreadable(f"It has {len(content)} bytes; no inventory has 50 MB.")
    if b"\0" in content:
        raise Unreadable("It is binary, not text.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"It is not UTF-8 text (byte {error.start}).") from error
    if not text.strip():
        raise Unreadable("It is empty.")
    return text


# --- JSON and YAML ---------------------------------------------------------------------------------------------------
def _read_json(text: str) -> Reading:
    try:
        document = json.loads(text)
    except ValueError as error:
        where = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise Unreadable(f"The JSON is broken or cut off{where}.") from error
    if isinstance(document, dict) and any(map(rocm.CARD.fullmatch, document)):
        return rocm.read(document)
    if isinstance(document, dict) and ("kind" in document or "items" in document):
        return kubernetes.read([document])
    raise Unreadable("This JSON is neither of rocm-smi (cards) nor of kubectl (nodes).")


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _read_yaml(text: str) -> Reading:
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=_LOADER)):
            # a few lines of references can stand for billions
            raise Unreadable("The YAML uses references (*name), which kubectl never does, so it is not read.")
        documents = list(yaml.load_all(text, Loader=_LOADER))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise Unreadable(f"The YAML is broken or cut off{f' in line {mark.line + 1}' if mark else ''}.") from error
    return kubernetes.read(documents)


# --- which form ------------------------------------------------------------------------------------------------------
def _first_line(text: str) -> str:
    return text.lstrip().split("\n", 1)[0]


def _is_csv(text: str) -> bool:
    cells = {re.sub(r"\s*\[.*\]$", "", cell.strip()) for cell in _first_line(text)[:20_000].split(",")}
    return len(cells) > 1 and bool(cells & {"name", "uuid", "memory.total", "index", "gpu_name", "gpu_uuid"})


# Which form it is, how many bytes of it are read at most (more than any real one has, and few enough for seconds), its reader.
_READERS: tuple[tuple[Callable[[str], bool], int, Callable[[str], Reading]], ...] = (
    (lambda text: text.lstrip().startswith("<"), 5_000_000, nvidia_xml.read),
    (lambda text: text.lstrip().startswith(("{", "[")), MOST_BYTES, _read_json),
    (lambda text: nvidia_text.GPU_LINE.match(text.lstrip()) is not None, 5_000_000, nvidia_text.read_list),
    (lambda text: re.search(r"^\| NVIDIA-SMI ", text[:4_000], re.MULTILINE) is not None, 5_000_000, nvidia_text.read_table),
    (_is_csv, 5_000_000, nvidia_text.read_csv),
    (lambda text: re.search(r"^kind: *(Node|NodeList|List)\s*$", text, re.MULTILINE) is not None, 10_000_000, _read_yaml),
    (exporters.is_dcgm, 10_000_000, exporters.read_dcgm),
    (exporters.is_smi_exporter, 10_000_000, exporters.read_smi_exporter),
)
