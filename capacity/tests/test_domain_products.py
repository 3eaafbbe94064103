"""Product names and the classes they stand for: one table for drivers, clusters and people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.domain.products import canonical_class, partition_resource_of, resource_of, slice_resource_of
from quotas.validators import validate_resource_class


@pytest.mark.parametrize(
    ("product", "resource", "known"),
    [
        ("NVIDIA H100 80GB HBM3", "gpu/h100", True),
        ("NVIDIA H100 PCIe", "gpu/h100", True),
        ("NVIDIA GH200 480GB", "gpu/gh200", True),
        ("NVIDIA H200", "gpu/h200", True),
        ("NVIDIA H20", "gpu/h20", True),
        ("NVIDIA A100-SXM4-80GB", "gpu/a100", True),
        ("NVIDIA A10", "gpu/a10", True),
        ("NVIDIA A10G", "gpu/a10g", True),
        ("NVIDIA L40S", "gpu/l40s", True),
        ("NVIDIA L40", "gpu/l40", True),
        ("NVIDIA L4", "gpu/l4", True),
        ("Tesla V100-SXM2-32GB", "gpu/v100", True),
        ("Tesla T4", "gpu/t4", True),
        ("NVIDIA GB200", "gpu/gb200", True),
        ("NVIDIA H100 NVL", "gpu/h100", True),
        ("NVIDIA-A100-SXM4-40GB", "gpu/a100", True),
        ("Tesla-V100-SXM2-32GB", "gpu/v100", True),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "gpu/rtx-pro-6000", True),
        ("NVIDIA-RTX-6000-Ada-Generation", "gpu/rtx-6000-ada", True),
        ("NVIDIA RTX 4000 SFF Ada Generation", "gpu/rtx-4000-sff-ada", True),
        ("NVIDIA RTX A6000", "gpu/rtx-a6000", True),
        ("Quadro RTX 8000", "gpu/quadro-rtx-8000", True),
        ("NVIDIA GeForce RTX 3090 Ti", "gpu/geforce-rtx-3090-ti", True),
        ("AMD Instinct MI300X", "gpu/mi300x", True),
        ("AMD Instinct MI250X / MI250", "gpu/mi250x", True),
        ("Arcturus GL-XL [Instinct MI100]", "gpu/mi100", True),
        ("AMD Radeon PRO W7900", "gpu/radeon-pro-w7900", True),
        ("NVIDIA GeForce RTX 4090", "gpu/geforce-rtx-4090", True),
        ("NVIDIA GeForce GTX 1080", "gpu/geforce-gtx-1080", False),
        ("", "gpu/unknown", False),
    ],
)
def test_a_product_has_its_class_and_an_unknown_one_its_own(product: str, resource: str, known: bool) -> None:
    assert resource_of(product) == (resource, known)


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "gpu/a100/mig-1g.5gb"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb+me", "gpu/a100/mig-1g.5gb-me"),
        ("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", "gpu/a100/mig-1c.3g.20gb"),
    ],
)
def test_a_slice_is_a_class_below_its_product(name: str, resource: str) -> None:
    assert slice_resource_of("NVIDIA A100-SXM4-40GB", name) == resource


@pytest.mark.parametrize(
    ("typed", "canonical"),
    [
        ("gpu/h100-sxm", "gpu/h100"),
        ("gpu/H100-SXM", "gpu/h100"),
        ("gpu/a100-80gb", "gpu/a100"),
        ("nvidia/h100", "gpu/h100"),
        ("gpu/a100-sxm4/mig-1g.5gb", "gpu/a100/mig-1g.5gb"),
        ("gpu/h100", None),
        ("gpu/rtx-6000-ada", None),
        ("gpu/geforce-rtx-4090", None),
        ("gpu/mi300x/cpx", None),
        ("gpu/big", None),
        ("h100", None),
        ("sim", None),
        ("model:gpu/h100-sxm", None),
    ],
)
def test_a_class_that_is_typed_in_by_another_name_has_its_canonical_one(typed: str, canonical: str | None) -> None:
    assert canonical_class(typed) == canonical


def test_a_partition_is_a_class_below_its_product_and_spx_is_the_whole() -> None:
    assert partition_resource_of("AMD Instinct MI300X", "cpx_nps4") == "gpu/mi300x/cpx-nps4"
    assert partition_resource_of("AMD Instinct MI300X", "spx_nps1") == "gpu/mi300x"


@given(st.text(), st.text())
def test_any_name_gives_a_class_that_can_be_stored_and_is_canonical(product: str, part: str) -> None:
    for resource in (resource_of(product)[0], slice_resource_of(product, part), partition_resource_of(product, part)):
        validate_resource_class(resource)
    assert canonical_class(resource_of(product)[0]) is None
