"""Every result file below shared/data/bench is read as its INDEX.md says, or refused with a sentence that says why.

The rows stand in `bench_rows_*`: file → (tool, [(in flight, output tokens/s) of each stage]), or words of the refusal.
"""

from pathlib import Path

import pytest

from capacity.bench.formats.contract import Unreadable
from capacity.bench.formats.registry import read_file
from capacity.domain.measurement.level import shown_level
from capacity.tests import bench_rows_guidellm, bench_rows_tools, bench_rows_vllm

OWNERS = (bench_rows_tools, bench_rows_guidellm, bench_rows_vllm)
ROWS = {name: row for owner in OWNERS for name, row in owner.ROWS.items()}


def levels(contents):
    return [(shown_level(stage), stage.tokens_per_second) for _, stage in contents.stages]


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not isinstance(row, str)])
def test_a_file_is_read_as_its_index_says(name, shared: Path):
    tool, expected = ROWS[name]
    contents = read_file(shared / "data" / "bench" / name, name)
    assert {setting.tool for setting, _ in contents.stages} == {tool}
    found = levels(contents)
    assert [tokens for _, tokens in found] == pytest.approx([tokens for _, tokens in expected], rel=1e-4)
    assert [level for level, _ in expected if level is not None] == pytest.approx(
        [level for (level, _), (known, _) in zip(found, expected, strict=True) if known is not None], rel=1e-4
    )


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if isinstance(row, str)])
def test_a_file_that_is_no_stage_is_refused_with_the_reason(name, shared: Path):
    with pytest.raises(Unreadable) as refusal:
        read_file(shared / "data" / "bench" / name, name)
    assert ROWS[name] in str(refusal.value)


def test_no_file_is_left_out(shared: Path):
    below = shared / "data" / "bench"
    names = {str(path.relative_to(below)) for path in below.rglob("*") if path.is_file()}
    assert names == set(ROWS)
