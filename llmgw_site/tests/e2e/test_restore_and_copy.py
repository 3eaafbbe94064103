"""An older backup put back while hosts run on, and a second installation on a copy: both act on nothing until a take-over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import rows
from .site import LiveSite

DONE = "SELECT count(*) FROM capacity_action WHERE state NOT IN ('advice', 'dropped')"


def problems(site: LiveSite) -> set[str]:
    """Codes of the newest pass, of those that keep a pool to advice."""
    [[written]] = site.ask("SELECT problems FROM capacity_pass ORDER BY id DESC LIMIT 1")
    return {row["code"] for row in json.loads(written)} & {"older_backup", "copied_database", "another_installation"}


def test_an_older_backup_put_back_acts_on_nothing_and_goes_on_after_a_take_over(site: LiveSite, tmp_path: Path) -> None:
    site.back_up(tmp_path / "backup.sqlite3")
    site.bounds("chat", 3, 4)
    names = site.wait_for(3)
    engines = site.engines()
    for name in ("beat", "worker", "web"):
        site.kill(name)
    site.put_back(tmp_path / "backup.sqlite3")
    actions = site.one(DONE)
    site.start("web", "worker", "beat")
    site.more_passes(4)
    assert problems(site) == {"older_backup"}
    assert site.engines() == engines, "nothing was ended, and nothing was started"
    assert site.wait_for(3) == names, "what was started since the backup is adopted"
    site.more_passes(15)
    assert problems(site) == {"older_backup"}, "however many passes were counted since"
    assert (site.engines(), site.one(DONE)) == (engines, actions)
    assert site.endpoints()["chat"] == set(names)

    assert "3 replicas run and are kept as they are" in site.manage("take_over", "--pool", rows.POOL, "--preview")
    assert problems(site) == {"older_backup"}
    site.manage("take_over", "--pool", rows.POOL, "--reason", "backup put back")
    # the backup wants one, and none is asked anything: two go by the usual rule, and the next is started on the same host
    (left,) = site.wait_for(1)
    assert left in names
    assert problems(site) == set()
    site.bounds("chat", 2, 4)
    site.wait_for(2)
    told = "SELECT history_change_reason FROM capacity_historicallease ORDER BY history_id DESC LIMIT 1"
    assert site.one(told) == "backup put back"


@pytest.fixture(params=["the same Redis", "its own Redis"])
def copy(request: pytest.FixtureRequest, site: LiveSite, tmp_path: Path) -> Iterator[LiveSite]:
    """A second installation, with its own folder and id, on a copy of the first one's database."""
    second = LiveSite(tmp_path / "second", site.redis_url if request.param == "the same Redis" else "")
    site.back_up(second.database)
    try:
        if request.param == "its own Redis":
            second.start("redis")
        yield second
    finally:
        second.down()


def test_a_second_installation_on_a_copy_acts_on_nothing_and_the_first_goes_on(site: LiveSite, copy: LiveSite) -> None:
    (name,) = site.wait_for(1)
    engines = site.engines()
    actions = copy.one(DONE)
    copy.bounds("chat", 3, 4)
    copy.start("worker", "beat")
    copy.more_passes(4)
    assert "copied_database" in problems(copy)
    assert copy.one(DONE) == actions
    site.more_passes(2)
    assert (site.engines(), problems(site)) == (engines, set())
    site.bounds("chat", 2, 4)
    assert name in site.wait_for(2), "the first does what it is asked, beside the second"
    copy.more_passes(3)
    assert copy.one(DONE) == actions
    assert len(site.engines()) == 2
    assert {"worker", "beat", "node"} <= site.running()
