"""What DCGM exporter and nvidia_gpu_exporter say at /metrics, as far as it is inventory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from capacity.domain.products import resource_of, slice_resource_of
from capacity.node.hardware.reading import Device, Reading, one_host
from capacity.sources.exposition import Labels, parse

_MEMORY = ("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_RESERVED")
# Metrics that every version has switched on: one of them is there for each device.
_DCGM = (
    *_MEMORY, "DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
)  # fmt: skip
_SMI = ("nvidia_smi_gpu_info", "nvidia_smi_memory_total_bytes", "nvidia_smi_mig_mode_current", "nvidia_smi_count")

# DCGM writes "no value" as a number: dcgm_structs.h, DCGM_{INT32,INT64,FP64}_BLANK and the fifteen above each.
_BLANKS = (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 140737488355328)

Key = tuple[str, str]  # device, its MIG instance or ""


def is_dcgm(text: str) -> bool:
    return "DCGM_FI_" in text


def is_smi_exporter(text: str) -> bool:
    return "nvidia_smi_" in text


def known(value: float) -> float | None:
    """None for DCGM's blanks, NaN and infinities."""
    if not math.isfinite(value) or any(float(blank) <= value <= float(blank + 15) for blank in _BLANKS):
        return None
    return value


def dcgm_values(text: str, wanted: tuple[str, ...] = _DCGM) -> dict[Key, dict[str, float | None]]:
    """(device, instance) → metric → value, None where DCGM has none. Of a device scraped twice the last value stands."""
    values: dict[Key, dict[str, float | None]] = {}
    for metric, series in parse(text, wanted).items():
        for labels, value in series.items():
            values.setdefault(_key(dict(labels)), {})[metric] = known(value)
    return values


def read_dcgm(text: str) -> Reading:
    """One device a UUID, or one a MIG instance of it. `gpu` and `Hostname` are the exporter's and tell nothing apart."""
    warnings = ["The same series stands in it more than once: the last one counts."] if _is_pasted(text) else []
    values, labels = dcgm_values(text), _labels(text)
    cut = {uuid for uuid, instance in values if instance}
    devices = [_dcgm_device(key, labels[key], said) for key, said in sorted(values.items()) if key[1] or key[0] not in cut]
    return one_host("DCGM exporter", devices, warnings)


def _dcgm_device(key: Key, labels: Mapping[str, str], said: Mapping[str, float | None]) -> Device:
    uuid, instance = key
    product = labels.get("modelName", "")
    resource = slice_resource_of(product, f"MIG {labels['GPU_I_PROFILE']}") if instance else resource_of(product)[0]
    return Device(id=f"{uuid}/{instance}" if instance else uuid, product=product, resource=resource, memory_mib=_memory(said))


def _memory(said: Mapping[str, float | None]) -> int | None:
    """The total, or what is free and used (and reserved) together; unknown where free or used is."""
    total = said.get("DCGM_FI_DEV_FB_TOTAL")
    if total is not None:
        return round(total)
    free, used = said.get("DCGM_FI_DEV_FB_FREE"), said.get("DCGM_FI_DEV_FB_USED")
    return None if free is None or used is None else round(free + used + (said.get("DCGM_FI_DEV_FB_RESERVED") or 0))


def _labels(text: str) -> dict[Key, dict[str, str]]:
    """Of each device the labels of all its series together."""
    found: dict[Key, dict[str, str]] = {}
    for series in parse(text, _DCGM).values():
        for labels in series:
            found.setdefault(_key(dict(labels)), {"GPU_I_PROFILE": "unknown"}).update(labels)
    return found


def _key(labels: Mapping[str, str]) -> Key:
    uuid = labels.get("UUID") or labels.get("gpu_uuid") or f"gpu {labels.get('gpu', '?')}"
    return uuid, labels.get("GPU_I_ID", "")


def _is_pasted(text: str) -> bool:
    """Whether a series comes twice: two scrapes in one file."""
    heads = Counter(line.rpartition("}")[0] for line in text.splitlines() if line.startswith("DCGM_FI_"))
    return max(heads.values(), default=0) > 1


def read_smi_exporter(text: str) -> Reading:
    """One device a UUID; memory in bytes. MIG instances are not in it."""
    series = parse(text, _SMI)
    memory, mig = (_by_uuid(series.get(name, {})) for name in _SMI[1:3])
    infos = [dict(labels) for labels in series.get("nvidia_smi_gpu_info", {})]
    devices = [_smi_device(labels, memory, mig) for labels in sorted(infos, key=lambda labels: labels.get("index", ""))]
    return one_host("nvidia_gpu_exporter", devices, _smi_warnings(series.get("nvidia_smi_count", {}), devices))


def _smi_device(labels: Mapping[str, str], memory: Mapping[str, float], mig: Mapping[str, float]) -> Device:
    uuid, product = labels.get("uuid", ""), labels.get("name", "")
    total = known(memory[uuid]) if uuid in memory else None
    return Device(
        id=uuid,
        product=product,
        resource=resource_of(product)[0],
        units=0 if mig.get(uuid) == 1 else 1,
        memory_mib=None if total is None else round(total / 2**20),
    )


def _by_uuid(series: Mapping[Labels, float]) -> dict[str, float]:
    return {dict(labels).get("uuid", ""): value for labels, value in series.items()}


def _smi_warnings(counts: Mapping[Labels, float], devices: list[Device]) -> Iterator[str]:
    said = {int(value) for value in counts.values() if known(value) is not None}
    if said and said != {len(devices)}:
        yield f"The exporter counts {max(said)} GPUs and names {len(devices)}: those that it names are counted."
    for device in devices:
        if not device.units:
            yield f"{device.product} is in MIG mode, and its instances are not in this text: it offers nothing here."
