"""`manage.py inventory`: what it prints, what it types in, what it refuses."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from capacity.models import Node
from capacity.tests.factories import make_node, make_pool

T4 = b"GPU 0: Tesla T4 (UUID: GPU-1)\nGPU 1: Tesla T4 (UUID: GPU-2)\n"
NODES = json.dumps(
    {
        "kind": "List",
        "items": [
            {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"amd.com/gpu": "8"}}} for name in ("a", "b")
        ],
    }
).encode()


def run(tmp_path: Path, content: bytes, **options: Any) -> str:
    path = tmp_path / "inventory.txt"
    path.write_bytes(content)
    out = io.StringIO()
    call_command("inventory", str(path), stdout=out, **options)
    return out.getvalue()


def refused(tmp_path: Path, content: bytes, **options: Any) -> str:
    with pytest.raises(CommandError) as error:
        run(tmp_path, content, **options)
    assert error.value.returncode == 2
    return str(error.value)


def test_it_prints_devices_classes_and_what_is_unknown(tmp_path: Path) -> None:
    assert run(tmp_path, T4).splitlines() == [
        "nvidia-smi -L",
        "this host: 2 gpu/t4",
        "  GPU-1  Tesla T4  gpu/t4  memory unknown",
        "  GPU-2  Tesla T4  gpu/t4  memory unknown",
    ]
    assert "! GeForce GTX 980 is not in the table" in run(tmp_path, b"GPU 0: GeForce GTX 980 (UUID: GPU-1)\n")


def test_unknown_memory_is_null_in_json(tmp_path: Path) -> None:
    found = json.loads(run(tmp_path, T4, as_json=True))
    assert (found["format"], found["node"]) == ("llmgw.inventory/1", None)
    assert found["hosts"][0]["devices"][0]["memory_mib"] is None
    assert found["hosts"][0]["units"] == {"gpu/t4": 2}


@pytest.mark.django_db
def test_a_new_node_is_made_with_what_was_read_and_the_reason_in_its_history(tmp_path: Path) -> None:
    pool = make_pool()
    said = run(tmp_path, T4, node="t4-1", pool=pool.name, reason="racked today")
    node = Node.objects.get(name="t4-1")
    assert (node.pool, node.resources) == (pool, {"gpu/t4": 2})
    assert node.history.first().history_change_reason == "racked today (2 gpu/t4)"
    assert said.splitlines()[-1] == "t4-1 has 2 gpu/t4, before no units."


@pytest.mark.django_db
def test_classes_that_are_no_gpus_stay_and_old_gpus_go(tmp_path: Path) -> None:
    make_node("n", resources={"sim": 8, "gpu/a100": 4})
    run(tmp_path, T4, node="n", reason="other cards")
    assert Node.objects.get(name="n").resources == {"sim": 8, "gpu/t4": 2}


@pytest.mark.django_db
def test_a_preview_writes_nothing(tmp_path: Path) -> None:
    make_node("n")
    said = run(tmp_path, T4, node="n", preview=True)
    assert "n would have 2 gpu/t4, 8 sim, before 8 sim." in said
    assert Node.objects.get(name="n").resources == {"sim": 8}
    assert Node.objects.get(name="n").history.count() == 1


@pytest.mark.django_db
def test_a_node_that_reports_keeps_what_it_reports(tmp_path: Path) -> None:
    make_node("n", reported_at="2026-11-30T12:00:00Z")
    assert "! n reports its own resources" in run(tmp_path, T4, node="n", reason="r")
    assert Node.objects.get(name="n").resources == {"sim": 8}


@pytest.mark.django_db
def test_of_several_hosts_the_one_of_that_name_is_typed_in(tmp_path: Path) -> None:
    pool = make_pool()
    run(tmp_path, NODES, node="b", pool=pool.name, reason="r")
    assert list(Node.objects.values_list("name", flat=True)) == ["b"]
    assert "has no host c; it has a, b" in refused(tmp_path, NODES, node="c", pool=pool.name, reason="r")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"node": "n"}, "--reason"),
        ({"node": "new", "reason": "r"}, "--pool"),
        ({"node": "new", "pool": "none", "reason": "r"}, "There is no pool “none”"),
        ({"node": "n", "pool": "none", "reason": "r"}, "belongs to the pool"),
        ({"node": "a//b", "pool": "here", "reason": "r"}, "no empty"),
    ],
)
def test_a_wrong_call_is_one_sentence_and_changes_nothing(tmp_path: Path, options: dict[str, str], sentence: str) -> None:
    make_pool("here")
    make_node("n")
    assert sentence in refused(tmp_path, T4, **options)
    assert list(Node.objects.values_list("name", "resources")) == [("n", {"sim": 8})]


@pytest.mark.parametrize("content", [b"", b"\0\1", b"<nvidia_smi_log>", b"not an inventory", T4[:20]])
def test_what_cannot_be_read_is_one_sentence_with_its_file(tmp_path: Path, content: bytes) -> None:
    said = refused(tmp_path, content)
    assert said.startswith(str(tmp_path)) and "\n" not in said


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        call_command("inventory", str(tmp_path / "none"))
