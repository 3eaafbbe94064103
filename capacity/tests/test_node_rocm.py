"""AMD devices of a host: what rocm-smi says, who holds them, and a rocm-smi that fails or hangs."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from capacity.node import rocm
from capacity.node.inventory import Hardware, assign
from capacity.node.nvml import Gpu
from capacity.node.processes import environment_of
from capacity.node.rocm import RocmFailed, RocmRefused, RocmSmi, read_amd

CARDS = {
    "card0": {"Card Series": "AMD Instinct MI300X", "Unique ID": "0xaa", "VRAM Total Memory (B)": str(192 << 30)},
    "card1": {"Card Series": "AMD Instinct MI300X", "Unique ID": "0xbb"},
    "system": {"Driver version": "6.3.6"},
}


def answers(cards: object = CARDS, holders: str = "", fails: tuple[str, ...] = ()) -> rocm.Ask:
    def ask(arguments: Sequence[str]) -> str:
        if set(fails) & set(arguments):
            raise RocmRefused("rocm-smi ended with status 2")
        return holders if "--showpidgpus" in arguments else f"WARNING: something\n{json.dumps(cards)}"

    return ask


def test_devices_are_listed_with_who_holds_them() -> None:
    found = read_amd(answers(holders="PID 77 is using 1 DRM device(s):\n1\n"))
    assert found == [
        Gpu(uuid="amd:GPU-aa", index=0, product="AMD Instinct MI300X", resource="gpu/mi300x", memory_mib=192 << 10),
        Gpu(uuid="amd:GPU-bb", index=1, product="AMD Instinct MI300X", resource="gpu/mi300x", pids=(77,)),
    ]


def test_partitions_share_a_unique_id_and_are_told_by_their_numbers() -> None:
    part = {"Card Series": "AMD Instinct MI300X", "Unique ID": "0xaa", "Compute Partition": "CPX"}
    found = read_amd(answers({"card0": part, "card1": part}))
    assert [(gpu.uuid, gpu.resource) for gpu in found] == [("amd:0", "gpu/mi300x/cpx"), ("amd:1", "gpu/mi300x/cpx")]


def test_a_version_that_does_not_know_partitions_is_asked_without() -> None:
    assert len(read_amd(answers(fails=("--showcomputepartition",)))) == 2


def test_a_host_without_rocm_smi_has_no_amd_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert read_amd() == []


def script(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "rocm-smi"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_the_program_on_the_path_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cards, holders = json.dumps(CARDS), "PID 5 is using 1 DRM device(s): 0"
    script(tmp_path, f"case \"$*\" in *json*) echo '{cards}';; *) echo '{holders}';; esac", monkeypatch)
    assert [(gpu.index, gpu.pids) for gpu in read_amd()] == [(0, (5,)), (1, ())]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("exit 3", "status 3"), ("echo not json", "something else than its JSON"), ("exec sleep 60", "no answer within")],
)
def test_a_program_that_fails_or_hangs_is_a_failure_of_bounded_time(
    text: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rocm, "ASK_SECONDS", 0.2)
    script(tmp_path, text, monkeypatch)
    with pytest.raises(RocmFailed, match=sentence):
        read_amd()


def test_only_the_first_look_waits_and_what_was_seen_stays_meanwhile() -> None:
    now, release, asked = [0.0], threading.Event(), []

    def ask() -> list[Gpu]:
        asked.append(now[0])
        if len(asked) > 1:
            release.wait(10)
        return [Gpu(uuid=f"amd:{len(asked)}", index=0, product="AMD Instinct MI300X")]

    source = RocmSmi(ask, clock=lambda: now[0])
    assert [gpu.uuid for gpu in source()] == ["amd:1"]
    now[0] = 20.0
    assert [gpu.uuid for gpu in source()] == ["amd:1"]
    now[0] = 60.0
    assert [gpu.uuid for gpu in source()] == ["amd:1"]  # it is still being asked: not twice at once
    assert asked == [0.0, 20.0]
    now[0] = 30.0
    release.set()
    source._asking.join(10)
    assert [gpu.uuid for gpu in source()] == ["amd:2"]


def test_a_failure_is_said_once_and_hides_no_other_devices(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> list[Gpu]:
        raise RocmFailed("rocm-smi ended with status 2")

    hardware = Hardware(typed={"cpu": 0}, gpus=lambda: [Gpu(uuid="u", index=0, product="NVIDIA L4")], amd=broken)
    with caplog.at_level(logging.WARNING):
        assert [dict(hardware.take_stock(set(), set()).offered) for _ in range(3)] == [{"gpu/l4": 1}] * 3
    assert [record.message for record in caplog.records] == [
        "rocm-smi ended with status 2. This host offers none of those devices."
    ]


def test_a_device_that_a_stranger_holds_is_foreign_and_ours_are_told_by_rocm_and_nvidia_alike() -> None:
    amd = [
        Gpu(uuid="amd:GPU-aa", index=0, product="AMD Instinct MI300X", resource="gpu/mi300x", pids=(os.getpid(),)),
        Gpu(uuid="amd:GPU-bb", index=1, product="AMD Instinct MI300X", resource="gpu/mi300x"),
    ]
    hardware = Hardware(typed={"cpu": 0}, gpus=list, amd=lambda: amd)
    seen = hardware.take_stock(set(), set())
    assert (dict(seen.offered), dict(seen.foreign)) == ({"gpu/mi300x": 1}, {"gpu/mi300x": 1})
    assert seen.labels == {"gpu.product": "AMD Instinct MI300X"}
    assert assign(seen, "gpu/mi300x", 1, {}, set()) == ("amd:GPU-bb",)


def test_an_engine_is_shown_its_devices_by_its_makers_variable() -> None:
    amd = environment_of("t", {}, ["amd:GPU-aa", "amd:1"])
    assert amd["ROCR_VISIBLE_DEVICES"] == "GPU-aa,1" and "CUDA_VISIBLE_DEVICES" not in amd
    assert environment_of("t", {}, ["GPU-1"])["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert environment_of("t", {}, [])["CUDA_VISIBLE_DEVICES"] == ""
