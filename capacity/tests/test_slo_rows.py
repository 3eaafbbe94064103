"""SLOs as rows and as values."""

from __future__ import annotations

from decimal import Decimal

import pytest

from capacity.domain.measurement.slo_text import parse_slo
from capacity.models import Slo
from capacity.slo_rows import row_of_slo, slo_of_row

pytestmark = pytest.mark.django_db


def test_a_row_is_the_slo_that_its_text_says_and_is_found_by_it() -> None:
    row = Slo.objects.create(
        name="chat", ttft_percentile=95, ttft_ms=500, tpot_percentile=99, tpot_ms=50, max_error_share=Decimal("0.02")
    )
    slo = parse_slo("ttft p95 500, tpot p99 50, errors 2%")
    assert slo_of_row(row) == slo
    assert row_of_slo(slo) == row
    assert row_of_slo(parse_slo("ttft p95 500, tpot p99 50")) is None


def test_a_row_without_a_bound_is_none() -> None:
    assert slo_of_row(Slo.objects.create(name="empty", ttft_ms=500)) is None
