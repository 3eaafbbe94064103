"""Hardware as tools print it: small texts of each form, broken ones, and hostile ones."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.node.hardware import Unreadable, read
from capacity.node.hardware.mig import profile_of
from capacity.node.hardware.rocm import holders

CARD = "NVIDIA A100-SXM4-40GB"


def units(text: str) -> dict[str, int]:
    (host,) = read(text.encode()).hosts
    return dict(host.units)


def xml(*gpus: str, attached: int | None = None) -> str:
    said = f"<attached_gpus>{attached}</attached_gpus>" if attached is not None else ""
    head = '<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">'
    return f"{head}<nvidia_smi_log>{said}{''.join(gpus)}</nvidia_smi_log>"


def gpu(product: str = CARD, mode: str = "N/A", parts: str = "", memory: str = "40960 MiB") -> str:
    return (
        f"<gpu id='0'><product_name>{product}</product_name><uuid>GPU-1</uuid>"
        f"<mig_mode><current_mig>{mode}</current_mig><pending_mig>{mode}</pending_mig></mig_mode>"
        f"<mig_devices>{parts}</mig_devices><fb_memory_usage><total>{memory}</total></fb_memory_usage></gpu>"
    )


def part(gi: int, memory: int, processors: int, ci: int = 0) -> str:
    return (
        f"<mig_device><gpu_instance_id>{gi}</gpu_instance_id><compute_instance_id>{ci}</compute_instance_id><device_attributes>"
        f"<shared><multiprocessor_count>{processors}</multiprocessor_count></shared></device_attributes>"
        f"<fb_memory_usage><total>{memory} MiB</total></fb_memory_usage></mig_device>"
    )


# --- nvidia-smi ------------------------------------------------------------------------------------------------------
def test_a_card_in_mig_mode_is_its_instances_and_never_a_whole_card() -> None:
    assert units(xml(gpu(mode="Enabled", parts=part(1, 4864, 14) + part(2, 19968, 42)))) == {
        "gpu/a100/mig-1g.5gb": 1,
        "gpu/a100/mig-3g.20gb": 1,
    }


def test_a_card_in_mig_mode_without_instances_offers_nothing() -> None:
    reading = read(xml(gpu(mode="Enabled", parts="None")).encode())
    assert (dict(reading.hosts[0].units), "offers nothing" in reading.warnings[0]) == ({}, True)


def test_compute_instances_that_share_memory_are_a_class_of_their_own() -> None:
    found = units(xml(gpu(mode="Enabled", parts=part(1, 19968, 14, 0) + part(1, 19968, 28, 1))))
    assert not {"gpu/a100/mig-3g.20gb", "gpu/a100/mig-1g.5gb"} & set(found)
    assert sum(found.values()) == 2


def test_memory_that_is_not_said_is_unknown_and_never_0() -> None:
    (host,) = read(xml(gpu(memory="N/A")).encode()).hosts
    assert host.devices[0].memory_mib is None


def test_a_host_without_gpus_has_none() -> None:
    assert units(xml(attached=0)) == {}


def test_a_device_that_needs_a_reset_is_not_offered() -> None:
    text = "index, name, uuid, memory.total [MiB]\n0, Tesla T4, GPU-1, 15360 MiB\n1, Tesla T4, GPU-2, [GPU requires reset]\n"
    reading = read(text.encode())
    assert dict(reading.hosts[0].units) == {"gpu/t4": 1}
    assert "requires a reset" in reading.warnings[0]


def test_a_csv_without_units_in_its_cells_takes_them_from_its_header() -> None:
    (host,) = read(b"name, memory.total [MiB]\nTesla T4, 15360\n").hosts
    assert host.devices[0].memory_mib == 15360
    (host,) = read(b"name, memory.total\nTesla T4, 15360\n").hosts
    assert host.devices[0].memory_mib is None


def test_a_line_of_the_list_that_is_none_is_said_and_the_others_count() -> None:
    reading = read(b"GPU 0: Tesla T4 (UUID: GPU-1)\nUnable to determine the device handle for GPU1: Unknown Error\n")
    assert dict(reading.hosts[0].units) == {"gpu/t4": 1}
    assert "Line 2" in reading.warnings[0]


def test_a_file_full_of_nonsense_warns_of_no_more_than_anybody_reads() -> None:
    reading = read(b"GPU 0: Tesla T4 (UUID: GPU-1)\n" + b"".join(b"nonsense %d\n" % number for number in range(5_000)))
    assert len(reading.warnings) == 101
    assert reading.warnings[-1] == "And 4900 more like these."


@pytest.mark.parametrize(
    ("product", "card", "memory", "processors", "profile"),
    [
        (CARD, 40960, 4864, 14, "1g.5gb"),
        (CARD, 40960, 19968, 56, "4g.20gb"),
        ("NVIDIA A100-SXM4-80GB", 81920, 9728, 14, "1g.10gb"),
        ("NVIDIA H100 80GB HBM3", 81559, 40448, 64, "4g.40gb"),
        ("NVIDIA H200", 143771, 16384, 16, "1g.18gb"),
        ("NVIDIA A30", 24576, 5952, 14, "1g.6gb"),
        (CARD, 40960, 19968, None, None),
        (CARD, None, 4864, 14, None),
        ("Tesla T4", 15360, 4864, 14, None),
    ],
)
def test_a_mig_profile_is_told_by_memory_and_multiprocessors(
    product: str, card: int | None, memory: int, processors: int | None, profile: str | None
) -> None:
    assert profile_of(product, card, memory, processors) == profile


# --- AMD -------------------------------------------------------------------------------------------------------------
def rocm(**cards: dict[str, str]) -> str:
    return json.dumps({**cards, "system": {"Driver version": "6.3.6"}})


@pytest.mark.parametrize(
    ("card", "resource"),
    [
        ({"Card Series": "AMD Instinct MI300X"}, "gpu/mi300x"),
        ({"Card series": "Arcturus GL-XL [Instinct MI100]", "Card model": "0x0c34"}, "gpu/mi100"),
        ({"Card Series": "N/A", "Device ID": "0x74a5"}, "gpu/mi325x"),
        ({"Card Model": "0x740f"}, "gpu/mi210"),
        ({"Card Series": "AMD Instinct MI300X", "Compute Partition": "CPX"}, "gpu/mi300x/cpx"),
        ({"Card Series": "AMD Instinct MI300X", "Compute Partition": "SPX"}, "gpu/mi300x"),
        ({"Card Series": "Radeon Vega 3"}, "gpu/radeon-vega-3"),
    ],
)
def test_an_amd_card_has_its_class_whatever_its_version_calls_the_name(card: dict[str, str], resource: str) -> None:
    assert units(rocm(card0=card)) == {resource: 1}


def test_a_card_is_known_by_its_unique_id_where_it_has_one() -> None:
    (host,) = read(rocm(card10={"Unique ID": "0x0000000000000000"}, card2={"Unique ID": "0xABCDEF0123456789"}).encode()).hosts
    assert [device.id for device in host.devices] == ["amd:GPU-abcdef0123456789", "amd:10"]


def test_who_uses_which_card_is_read_from_either_form() -> None:
    text = "==\nPID 12 is using 2 DRM device(s):\n0 1 \nPID 7 is using 1 DRM device(s): 1\nPID 9 is using 0 DRM device(s)\n==\n"
    assert holders(text) == {0: (12,), 1: (7, 12)}


# --- Kubernetes ------------------------------------------------------------------------------------------------------
def node(allocatable: dict[str, object], labels: dict[str, str] | None = None, **more: object) -> str:
    status = {"allocatable": allocatable, **more}
    return json.dumps({"kind": "Node", "metadata": {"name": "n", "labels": labels or {}}, "status": status})


@pytest.mark.parametrize(
    ("allocatable", "labels", "expected"),
    [
        ({"nvidia.com/gpu": "8"}, {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, {"gpu/h100": 8}),
        ({"nvidia.com/gpu": "7"}, {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}, {"gpu/a100/mig-1g.5gb": 7}),
        (
            {"nvidia.com/gpu": "8"}, {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"},
            {"gpu/t4/shared-4": 8},
        ),
        ({"nvidia.com/gpu": "8"}, {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.replicas": "4"}, {"gpu/t4/shared-4": 8}),
        ({"nvidia.com/gpu": "0", "nvidia.com/mig-3g.20gb": "0"}, {"nvidia.com/gpu.count": "1"}, {}),
        ({"nvidia.com/mig-1g.5gb.me": "1"}, {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}, {"gpu/a100/mig-1g.5gb-me": 1}),
        ({"nvidia.com/mig-1g.5gb.shared": "4"}, {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}, {}),
        ({"amd.com/gpu": "16"}, {"beta.amd.com/gpu.device-id.74a1": "8"}, {"gpu/mi300x/dpx": 16}),
        ({"amd.com/gpu": "8"}, {"amd.com/gpu.product-name": "AMD_Instinct_MI325_OAM"}, {"gpu/amd-instinct-mi325-oam": 8}),
        ({"nvidia.com/gpu": "1.5"}, {}, {}),
        ({"nvidia.com/gpu": 2}, {"nvidia.com/gpu.product": "NVIDIA-L4"}, {"gpu/l4": 2}),
        ({"cpu": "4"}, {}, {}),
    ],
)  # fmt: skip
def test_what_a_node_may_give_out_is_what_counts(
    allocatable: dict[str, object], labels: dict[str, str], expected: dict[str, int]
) -> None:
    assert units(node(allocatable, labels)) == expected


def test_a_node_that_is_not_ready_is_said() -> None:
    reading = read(node({}, conditions=[{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]).encode())
    assert reading.warnings == ("n: it is not ready (NodeStatusUnknown).",)


# --- what is none of them --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "empty"),
        (b"hello", "none of the forms"),
        (b"\x7fELF\x00\x01", "binary"),
        (b"caf\xe9", "not UTF-8"),
        (b" " * 50_000_000, "no inventory has 50 MB"),
        (b"<nvidia_smi_log><gpu>", "broken or cut off in line 1"),
        (b"<html><body>502</body></html>", "first element is <html>"),
        (b"<a>" * 100_000, "more than 50 deep"),
        (b'<!DOCTYPE x [<!ENTITY a "aaa"><!ENTITY b "&a;&a;">]><nvidia_smi_log>&b;</nvidia_smi_log>', "entity"),
        (b'{"card0": {"Card', "broken or cut off in line 1"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"items": 3}', "no node"),
        (b'{"card0": 3}', "names no card"),
        (b"<nvidia_smi_log>" + b" " * 5_000_000, "no such answer has 5 MB"),
        (b'{"a": 1}', "neither of rocm-smi"),
        (b"kind: Node\nmetadata: &a {name: x}\nb: *a\n", "references"),
        (b"kind: Node\nmetadata: {name: x", "broken or cut off in line"),
        (b"kind: Node\nx: " + b"[" * 100_000, "broken or cut off"),
        (b"name, uuid\n", "no row"),
        (b"name, uuid\nTesla T4\n", "line 2: 1 of 2 cells"),
        (b"index, memory.total [MiB]\n0, 1 MiB\n", "no column"),
        (b'name, uuid\n"' + b"x" * 200_000 + b'", 1\n', "CSV is broken"),
        (b"| NVIDIA-SMI 590.48.01   Driver Version: 590.48.01 |\n+----\n", "names no GPU"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(Unreadable) as error:
        read(content)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with contextlib.suppress(Unreadable):
        read(content)


KEYS = [
    "name", "labels", "allocatable", "conditions", "taints", "nvidia.com/gpu", "amd.com/gpu", "Card Series", "Unique ID",
    "VRAM Total Memory (B)",
]  # fmt: skip
TOP = ["kind", "items", "metadata", "status", "spec", "card0", "card1"]
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
)


@given(st.dictionaries(st.sampled_from(TOP), VALUES | st.just("Node")))
def test_json_of_any_shape_is_read_or_refused(document: dict[str, object]) -> None:
    with contextlib.suppress(Unreadable):
        read(json.dumps(document).encode())


@given(st.integers(0, 400))
def test_a_file_that_is_cut_anywhere_is_refused_or_counts_no_more_than_the_whole(length: int) -> None:
    text = xml(gpu("Tesla T4"), attached=1)
    try:
        found = units(text[:length])
    except Unreadable:
        return
    assert sum(found.values()) <= 1
