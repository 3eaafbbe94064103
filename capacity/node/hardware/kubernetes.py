"""`kubectl get nodes -o json|yaml`: what each node may give out. Allocatable counts, not labels and not capacity."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from capacity.domain.products import (
    amd_product,
    is_shared,
    is_slice,
    partition_resource_of,
    resource_of,
    shared_resource_of,
    slice_resource_of,
)  # fmt: skip
from capacity.node.hardware.reading import Host, Reading, Unreadable, bounded, unknown

MOST_UNITS = 1_000_000
_WHOLE = {"nvidia.com/gpu", "amd.com/gpu", "alibabacloud.com/gpu-count"}
_COUNT = re.compile(r"\d{1,9}")
_MIG = re.compile(r"nvidia\.com/mig-((?:\d+c\.)?\d+g\.\d+gb(?:[.+-](?:me|gfx)\w*)*)")
_AMD_PART = re.compile(r"amd\.com/((?:spx|dpx|tpx|qpx|cpx)_nps\d)")
_AMD_ID = re.compile(r"(?:beta\.)?amd\.com/gpu\.device-id\.([0-9a-f]{4})")
_MODES = {2: "dpx", 3: "tpx", 4: "qpx", 8: "cpx"}
# Resources of others that stand for GPUs and are not read: named, so that nobody takes them for none.
_OTHERS = (
    "nvidia.com/gpu.shared", "nvidia.com/mig-", "nvidia.com/gpumem", "nvidia.com/gpucores", "gpu.intel.com/i915",
    "gpu.intel.com/xe", "habana.ai/gaudi", "google.com/tpu", "aws.amazon.com/neuron", "aliyun.com/gpu-mem",
    "huawei.com/Ascend910",
)  # fmt: skip


def read(documents: Sequence[Any]) -> Reading:
    """Nodes by name. A node without GPUs has none; keys with a count of 0 are what an earlier layout left."""
    warnings: list[str] = []
    nodes = [node for document in documents for node in _nodes(document)]
    if not nodes:
        raise Unreadable("There is no node in it: this reads what `kubectl get nodes -o json` or `-o yaml` prints.")
    hosts = tuple(_host(node, warnings) for node in nodes)
    return Reading(source="kubectl get nodes", hosts=hosts, warnings=bounded(warnings))


def _nodes(document: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(document, dict):
        return
    if document.get("kind") == "Node":
        yield document
    elif isinstance(document.get("items"), list):
        yield from (item for item in document["items"] if isinstance(item, dict) and item.get("kind", "Node") == "Node")


def _host(node: Mapping[str, Any], warnings: list[str]) -> Host:
    name = str(_map(node, "metadata").get("name") or "")[:200]
    labels = {str(key): str(value) for key, value in _map(_map(node, "metadata"), "labels").items()}
    allocatable, capacity = (_map(_map(node, "status"), key) for key in ("allocatable", "capacity"))
    said = _Said(name=name, labels=labels, allocatable=allocatable, warnings=warnings)
    units: dict[str, int] = {}
    products: list[str] = []
    for resource, product, count in _offers(said):
        units[resource] = units.get(resource, 0) + count
        products.append(product)
    warnings.extend(_state(name, node))
    warnings.extend(_unhealthy(name, allocatable, capacity))
    shown = {key: str(allocatable[key])[:40] for key in ("cpu", "memory") if key in allocatable}
    return Host(name=name, units=dict(sorted(units.items())), shown=shown, unknown_products=unknown(products))


class _Said:
    """A node's words, and where its faults go."""

    def __init__(self, *, name: str, labels: Mapping[str, str], allocatable: Mapping[str, Any], warnings: list[str]) -> None:
        self.name, self.labels, self.allocatable, self.warnings = name, labels, allocatable, warnings

    def warn(self, text: str) -> None:
        self.warnings.append(f"{self.name}: {text}")

    def count(self, resource: str) -> int:
        """Whole units that may be given out; a quantity that is none is named and counts as none."""
        text = str(self.allocatable.get(resource, 0)).strip()
        if _COUNT.fullmatch(text) and int(text) <= MOST_UNITS:
            return int(text)
        self.warn(f"{resource} is {text[:40]!r}, which is no number of devices; it is left out.")
        return 0


Offer = tuple[str, str, int]  # class, product, units


def _offers(said: _Said) -> Iterator[Offer]:
    for key in sorted(map(str, said.allocatable)):
        if _is_read(key):
            if count := said.count(key):
                yield _offer(said, key, count)
        elif key.startswith(_OTHERS) and str(said.allocatable[key]) != "0":
            said.warn(f"{key[:100]} is not read here; type its units in where they are whole devices.")


def _is_read(key: str) -> bool:
    return key in _WHOLE or _MIG.fullmatch(key) is not None or _AMD_PART.fullmatch(key) is not None


def _offer(said: _Said, key: str, count: int) -> Offer:
    nvidia = said.labels.get("nvidia.com/gpu.product", "")
    if part := _MIG.fullmatch(key):
        product = said.labels.get(f"nvidia.com/mig-{part[1]}.product", nvidia)
        return slice_resource_of(product, f"MIG {part[1]}"), product, count
    if part := _AMD_PART.fullmatch(key):
        product = _amd(said)
        return partition_resource_of(product, part[1]), product, count
    if key == "nvidia.com/gpu":
        return _nvidia(said, nvidia, count)
    if key == "amd.com/gpu":
        return _amd_whole(said, count)
    product = said.labels.get("alibabacloud.com/gpu-card-model", "")
    return resource_of(product)[0], product, count


def _nvidia(said: _Said, product: str, count: int) -> Offer:
    """Whole devices; under MIG's strategy "single" slices; under time-slicing turns."""
    if is_slice(product):
        said.warn(f"nvidia.com/gpu counts MIG slices there ({product}), no whole devices.")
        return slice_resource_of(product, product), product, count
    turns = said.labels.get("nvidia.com/gpu.replicas", "1")
    if is_shared(product) or (turns.isdigit() and int(turns[:6]) > 1):
        said.warn(f"its {count} nvidia.com/gpu are turns on shared devices (time-slicing), not devices with memory of their own.")
        return shared_resource_of(product, int(turns[:6]) if turns.isdigit() else 0), product, count
    return resource_of(product)[0], product, count


def _amd(said: _Said) -> str:
    found = next((_AMD_ID.fullmatch(key) for key in sorted(said.labels) if _AMD_ID.fullmatch(key)), None)
    device = found[1] if found else said.labels.get("amd.com/gpu.device-id", "")
    named = said.labels.get("amd.com/gpu.product-name", "")
    return named or amd_product(device) or (f"AMD device {device}" if device else "")


def _amd_whole(said: _Said, count: int) -> Offer:
    """amd.com/gpu counts partitions too: more of them than cards means that each card is several."""
    product = _amd(said)
    counts = [value for key, value in said.labels.items() if key.startswith("beta.amd.com/gpu.device-id.")]
    cards = sum(int(value) for value in counts if _COUNT.fullmatch(value))
    mode = said.labels.get("amd.com/gpu.compute-memory-partition") or (
        _MODES.get(count // cards, f"part-{count // cards}") if cards and count % cards == 0 and count > cards else ""
    )
    if not mode or mode.lower().startswith("spx"):
        return resource_of(product)[0], product, count
    said.warn(f"its {count} amd.com/gpu are partitions ({mode}) of {cards or 'its'} cards, no whole devices.")
    return partition_resource_of(product, mode), product, count


def _unhealthy(name: str, allocatable: Mapping[str, Any], capacity: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(map(str, capacity)):
        there, usable = str(capacity[key]), str(allocatable.get(key, 0))
        if _is_read(key) and _COUNT.fullmatch(there) and _COUNT.fullmatch(usable) and int(usable) < int(there):
            yield f"{name}: {usable} of its {there} {key} may be given out; the others are not healthy or are kept back."


def _state(name: str, node: Mapping[str, Any]) -> Iterator[str]:
    spec, status = _map(node, "spec"), _map(node, "status")
    if spec.get("unschedulable") is True:
        yield f"{name}: it is cordoned in Kubernetes."
    conditions = status.get("conditions")
    for condition in conditions if isinstance(conditions, list) else []:
        if isinstance(condition, dict) and condition.get("type") == "Ready" and condition.get("status") != "True":
            yield f"{name}: it is not ready ({str(condition.get('reason') or 'no reason given')[:80]})."
    taints = spec.get("taints")
    keys = [str(t.get("key"))[:80] for t in taints if isinstance(t, dict)] if isinstance(taints, list) else []
    if keys:
        yield f"{name}: it is tainted ({', '.join(keys[:4])}): only pods that tolerate that run there."


def _map(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = parent.get(key)
    return found if isinstance(found, dict) else {}
