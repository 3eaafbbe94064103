"""GuideLLM's two kinds of CSV, and what is wrong with the later one."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from capacity.bench.formats.contract import Unreadable
from capacity.bench.formats.guidellm.stages import LISTED
from capacity.bench.formats.registry import read_file
from capacity.domain.measurement.types import Stage
from capacity.tests.guidellm_files import COUNTS, GENERATIONS, concurrent, early_csv, later_csv, read


def test_theearly_csv_is_read_by_the_order_that_its_heading_says() -> None:
    ((setting, stage),) = read(early_csv(), "csv").stages
    assert (setting.model, setting.input_tokens, stage.mean_in_flight, stage.asked) == ("org/m", 64, 4.8, None)
    assert (stage.ttft_ms["p95"], stage.ttft_ms["p50"], stage.e2e_ms["p95"]) == (95, 50, pytest.approx(95))
    assert (stage.requests, stage.errors, stage.incomplete, stage.tokens_per_second) == (57, 3, 4, 300.0)


@pytest.mark.parametrize("kept", [0.05, 0.5, 0.95])
def test_a_csv_whose_writer_crashed_is_refused_with_the_line(kept: float, tmp_path: Path) -> None:
    """guidellm issue 434: a heading, and a part of the first row."""
    heading, row = early_csv()
    whole = io.StringIO()
    csv.writer(whole).writerows([heading, row])
    begun = whole.getvalue().index("poisson")
    file = tmp_path / "run.csv"
    file.write_text(whole.getvalue()[: begun + int(kept * (len(whole.getvalue()) - begun))], newline="")
    with pytest.raises(Unreadable, match="cut off in line 2"):
        read_file(file, "run.csv")


def test_a_cut_row_of_theearly_csv_is_listed() -> None:
    table = early_csv(2)
    table[2] = table[2][:7]
    contents = read(table, "csv")
    assert len(contents.stages) == 1 and "cut off" in contents.skipped[0].why


@pytest.mark.parametrize("sizes", [("@2", "@4"), ("", "")], ids=["0.8", "0.5"])
def test_thelater_csv_equals_the_json_of_the_same_run(sizes: tuple[str, ...]) -> None:
    """Equal but for where they stand, so that both files together are one sweep."""
    document = GENERATIONS["0.8.1"]([(concurrent(2), COUNTS), (concurrent(4), COUNTS)])
    for table, plain in zip(read(later_csv(sizes), "csv").stages, read(document).stages, strict=True):
        assert table[0] == plain[0]
        assert _figures(table[1]) == _figures(plain[1])


def _figures(stage: Stage) -> tuple[Any, ...]:
    counted = (stage.asked, stage.mean_in_flight, stage.requests, stage.errors, stage.incomplete, stage.seconds, stage.flags)
    return (*counted, stage.tokens_per_second, stage.ttft_ms, stage.tpot_ms, stage.e2e_ms)


@pytest.mark.parametrize("shift", [["", ""], []], ids=["more cells than headings", "as many, but shifted"])
def test_a_shifted_row_is_skipped_with_a_hint_at_the_json(shift: list[str]) -> None:
    table = later_csv()
    table[4] = [*table[4][:5], *shift, "0", *table[4][5:]][: None if shift else len(table[4])]
    contents = read(table, "csv")
    assert [stage.asked for _, stage in contents.stages] == [2]
    assert "row 5" in contents.skipped[0].where and "import the JSON" in contents.skipped[0].why


def test_a_table_without_one_fitting_row_is_refused() -> None:
    table = later_csv(("@2",))
    table[3] = [*table[3], "1"]
    with pytest.raises(Unreadable, match="import the JSON"):
        read(table, "csv")


def test_the_order_of_a_cell_of_percentiles_is_fixed() -> None:
    assert LISTED == ("min", "p001", "p1", "p5", "p10", "p25", "p75", "p90", "p95", "p99", "max")
