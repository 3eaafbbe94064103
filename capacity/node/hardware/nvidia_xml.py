"""`nvidia-smi -q -x`: one <gpu> a device, its MIG instances within."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from capacity.domain.products import resource_of, slice_resource_of
from capacity.node.hardware.mig import profile_of
from capacity.node.hardware.reading import Device, Reading, Unreadable, mebibytes, one_host

SOURCE = "nvidia-smi -q -x"
MOST_DEEP = 50


def read(text: str) -> Reading:
    """Devices and slices. A cut file's `attached_gpus` differs from what it holds: that is said, and what it holds counts."""
    root = _parsed(text)
    if root.tag != "nvidia_smi_log":
        raise Unreadable(f"This XML is no answer of nvidia-smi -q -x: its first element is <{root.tag[:60]}>.")
    gpus = root.findall("gpu")
    warnings = list(_count(root, len(gpus)))
    devices = [device for position, gpu in enumerate(gpus) for device in _devices(gpu, position, warnings)]
    return one_host(SOURCE, devices, warnings)


def _parsed(text: str) -> Element:
    """The tree, without entities of its own, without what lies outside, and not deeper than any real answer."""
    builder, parser = TreeBuilder(), expat.ParserCreate()
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MOST_DEEP:
            raise Unreadable(f"Elements lie more than {MOST_DEEP} deep: this is no answer of nvidia-smi.")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def entity(name: str, *_: object) -> None:
        raise Unreadable(f"The file defines an entity ({name[:40]}); nvidia-smi never does, so it is not read.")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = builder.data, entity
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise Unreadable(f"The XML is broken or cut off in line {error.lineno}: {expat.ErrorString(error.code)}.") from error
    return builder.close()


def _count(root: Element, found: int) -> Iterator[str]:
    said = (root.findtext("attached_gpus") or "").strip()
    if said.isascii() and said.isdigit() and int(said[:9]) != found:
        yield f"The file says that {said[:9]} GPUs are attached and holds {found}: those that it holds are counted."


def _devices(gpu: Element, position: int, warnings: list[str]) -> Iterable[Device]:
    product = _said(gpu, "product_name") or ""
    uuid = _said(gpu, "uuid") or gpu.get("id") or str(position)
    memory = mebibytes(gpu.findtext("fb_memory_usage/total"))
    mode, pending = _said(gpu, "mig_mode/current_mig"), _said(gpu, "mig_mode/pending_mig")
    if mode != pending:
        warnings.append(f"GPU {position}: MIG is {mode} and will be {pending} after its next reset.")
    if mode != "Enabled":
        return [Device(id=uuid, product=product, resource=resource_of(product)[0], memory_mib=memory)]
    parts = gpu.findall("mig_devices/mig_device")
    if parts:
        return _slices(uuid, product, memory, parts, position, warnings)
    warnings.append(f"GPU {position} ({product}) is in MIG mode and has no instance: it offers nothing.")
    return [Device(id=uuid, product=product, resource=resource_of(product)[0], units=0, memory_mib=memory)]


def _slices(
    uuid: str, product: str, card_mib: int | None, parts: list[Element], position: int, warnings: list[str]
) -> Iterator[Device]:
    sharing = Counter(part.findtext("gpu_instance_id") for part in parts)
    for part in parts:
        gi, ci = _said(part, "gpu_instance_id") or "?", _said(part, "compute_instance_id") or "?"
        memory = mebibytes(part.findtext("fb_memory_usage/total"))
        processors = _whole(part.findtext("device_attributes/shared/multiprocessor_count"))
        profile = profile_of(product, card_mib, memory, processors)
        if sharing[part.findtext("gpu_instance_id")] > 1:
            # several engines in one instance take each other's memory: nobody measured them so
            warnings.append(f"GPU {position}: several compute instances share the memory of GPU instance {gi}.")
            profile = f"ci.{processors or '?'}sm.{memory or '?'}mib"
        elif profile is None:
            warnings.append(f"GPU {position}: the profile of instance {gi} cannot be told from {memory} MiB of {product}.")
            profile = f"{memory or 'unknown'}mib"
        resource = slice_resource_of(product, f"MIG {profile}")
        yield Device(id=_said(part, "uuid") or f"{uuid}/{gi}/{ci}", product=product, resource=resource, memory_mib=memory)


def _said(element: Element, path: str) -> str | None:
    text = (element.findtext(path) or "").strip()
    return None if text in {"", "N/A", "None"} else text


def _whole(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
