"""Every file of the shared inventory that concerns nvidia-smi, MIG or AMD reads as its INDEX says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from capacity.node.hardware import Reading, read
from capacity.node.hardware.exporters import dcgm_values

SMI, K8S, METRICS = "inventory/nvidia-smi/", "inventory/k8s/", "metrics/"
H100_MIG = {"gpu/h100/mig-3g.40gb": 1, "gpu/h100/mig-2g.20gb": 1, "gpu/h100/mig-1g.10gb": 2}
A100_MIG = {"gpu/a100/mig-1g.5gb": 2, "gpu/a100/mig-2g.10gb": 1}

# file → units of all hosts, memory of each device in MiB (None: the file has no devices), what a warning says
READINGS = [
    (SMI + "telegraf_a100-sxm4-80gb_mig.xml", {"gpu/a100/mig-1g.20gb": 4}, [19968] * 4, "4 GPUs are attached and holds 1"),
    (SMI + "telegraf_a10g.xml", {"gpu/a10g": 1}, [23028], ""),
    (SMI + "telegraf_t4.xml", {"gpu/t4": 1}, [15360], ""),
    (SMI + "telegraf_rtx-4000-sff-ada.xml", {"gpu/rtx-4000-sff-ada": 1}, [20475], ""),
    (SMI + "netdata_a100-sxm4-40gb_mig.xml", {"gpu/a100/mig-3g.20gb": 2}, [19968] * 2, ""),
    (SMI + "netdata_rtx-pro-6000_min.xml", {"gpu/rtx-pro-6000": 1}, [None], ""),
    (SMI + "h100-80gb_mig_query-gpu.csv", {}, [81559], "MIG mode, and its instances are not in this text"),
    (SMI + "h100-80gb_mig_L.txt", H100_MIG, [None] * 4, ""),
    (SMI + "h100-80gb_mig_table.txt", H100_MIG, [40448, 20096, 9984, 9984], ""),
    (SMI + "h200_query-gpu.csv", {"gpu/h200": 1}, [143771], ""),
    (SMI + "h200_L.txt", {"gpu/h200": 1}, [None], ""),
    (SMI + "h200_table.txt", {"gpu/h200": 1}, [143771], ""),
    (SMI + "l40s_query-gpu.csv", {"gpu/l40s": 1}, [46068], ""),
    (SMI + "l40s_L.txt", {"gpu/l40s": 1}, [None], ""),
    (SMI + "l40s_table.txt", {"gpu/l40s": 1}, [46068], ""),
    (SMI + "dstack_8xh100_table.txt", {"gpu/h100": 8}, [81559] * 8, ""),
    ("inventory/amd/telegraf_mi100_rocm602.json", {"gpu/mi100": 4}, [32752] * 4, ""),
    (K8S + "node_a100_mig_mixed.yaml", A100_MIG, None, ""),
    (K8S + "node_2xt4.yaml", {"gpu/t4": 2}, None, ""),
    (K8S + "kubectl_get_nodes.json", {"gpu/t4": 2, **A100_MIG}, None, ""),
    (K8S + "kwok_node_no_gpu.yaml", {}, None, "tainted"),
    (
        K8S + "nodes_mi300x_assembled.json",
        {"gpu/mi300x": 8 + 7 + 5, "gpu/mi300x/cpx": 64, "gpu/mi300x/cpx-nps1": 24},
        None,
        "mi300x-1: 7 of its 8 amd.com/gpu",
    ),
    (
        K8S + "alibaba_openb_nodes_sample.yaml",
        {"gpu/a10": 2, "gpu/g2": 32, "gpu/g3": 32, "gpu/p100": 8, "gpu/t4": 12, "gpu/v100": 16 + 32},
        None,
        "",
    ),
    (METRICS + "dcgm_mig_2x1g5gb_1x2g10gb.txt", A100_MIG, [9855, 4864, 4864], ""),
    (METRICS + "dcgm_mig_disabled_duplicated.txt", {"gpu/a100": 1}, [40384], "more than once: the last one counts"),
    (METRICS + "dcgm_sentinel_values.txt", {"gpu/unknown/mig-1g.10gb": 1}, [None], ""),
    (METRICS + "nvidia_gpu_exporter_h200_load.txt", {"gpu/h200": 1}, [143771], ""),
]


def units(reading: Reading) -> dict[str, int]:
    found: Counter[str] = Counter()
    for host in reading.hosts:
        found.update(host.units)
    return dict(found)


@pytest.mark.parametrize(("name", "expected", "memory", "warning"), READINGS, ids=[row[0] for row in READINGS])
def test_the_file_reads_as_its_index_says(
    name: str, expected: dict[str, int], memory: list[int | None] | None, warning: str, shared: Path
) -> None:
    reading = read((shared / "data" / name).read_bytes())
    assert units(reading) == expected
    if memory is not None:
        assert [device.memory_mib for host in reading.hosts for device in host.devices] == memory
    assert warning in " ".join(reading.warnings)


def test_no_file_of_these_folders_is_left_out(shared: Path) -> None:
    data = shared / "data"
    there = [path for folder in (SMI, K8S, "inventory/amd") for path in (data / folder).iterdir()]
    there += [*data.glob("metrics/dcgm*"), *data.glob("metrics/nvidia_gpu_exporter*")]
    assert {str(path.relative_to(data)) for path in there} == {row[0] for row in READINGS}


def test_what_dcgm_cannot_say_is_no_value_and_units_are_mebibytes(shared: Path) -> None:
    values = dcgm_values((shared / "data" / "metrics/dcgm_sentinel_values.txt").read_text())
    assert values["GPU-aaa", ""]["DCGM_FI_DEV_MEMORY_TEMP"] is None
    assert values["GPU-aaa", ""]["DCGM_FI_DEV_FB_USED"] == 1024
    assert values["GPU-aaa", "2"] == {"DCGM_FI_DEV_GPU_UTIL": 60}


def test_an_instance_without_a_utilisation_is_not_idle(shared: Path) -> None:
    values = dcgm_values((shared / "data" / "metrics/dcgm_mig_2x1g5gb_1x2g10gb.txt").read_text())
    assert len(values) == 3
    assert all("DCGM_FI_DEV_GPU_UTIL" not in said for said in values.values())
    assert sorted(said["DCGM_FI_DEV_FB_USED"] for said in values.values()) == [98, 153, 4384]


def test_the_unknown_cards_of_a_cluster_are_named(shared: Path) -> None:
    reading = read((shared / "data" / K8S / "alibaba_openb_nodes_sample.yaml").read_bytes())
    assert {product for host in reading.hosts for product in host.unknown_products} == {"G2", "G3"}
