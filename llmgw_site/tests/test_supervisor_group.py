"""All children together: what is wanted and what runs are brought together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from llmgw_site.supervisor.child import Child, read_records
from llmgw_site.supervisor.children import Site, engines, node_name
from llmgw_site.supervisor.group import Group

from .waiting import WAITS, until

WEB = Child(name="web", command=WAITS, stage=1)
NODE = Child(name="node", command=WAITS, stage=2)


def pids(folder: Path) -> dict[str, int]:
    return {record.name: record.pid for record in read_records(folder)}


def group_in(folder: Path) -> Group:
    return Group(folder=folder, root=folder)


def test_what_is_missing_is_started_and_what_is_there_stays(folder):
    group = group_in(folder)
    group.keep([WEB], 0)
    first = pids(folder)
    group.keep([WEB, NODE], 1)
    assert pids(folder)["web"] == first["web"]
    assert set(pids(folder)) == {"web", "node"}


def test_what_is_not_wanted_any_more_is_ended(folder):
    group = group_in(folder)
    group.keep([WEB, NODE], 0)
    until(lambda: group.keep([WEB], 1) == [] and set(pids(folder)) == {"web"})


def test_one_that_comes_back_while_it_ends_is_started_only_when_it_is_gone(folder):
    group = group_in(folder)
    group.keep([WEB, NODE], 0)
    before = pids(folder)["node"]
    group.keep([WEB], 1)
    until(lambda: group.keep([WEB, NODE], 1) == [] and pids(folder).get("node") not in (None, before))


def test_a_child_with_another_command_takes_the_place_of_the_old_one(folder):
    group = group_in(folder)
    group.keep([WEB], 0)
    before = pids(folder)["web"]
    other = replace(WEB, command=(*WAITS, "other port"))
    until(lambda: group.keep([other], 1) == [] and pids(folder).get("web") not in (None, before))


def test_the_next_supervisor_adopts_what_runs(folder):
    group_in(folder).keep([WEB, NODE], 0)
    before = pids(folder)
    following = group_in(folder)
    assert following.adopt([WEB, NODE], 0) == ["node", "web"]
    assert following.end_unlike([WEB, NODE], 0)
    following.keep([WEB, NODE], 0)
    assert pids(folder) == before


def test_the_next_supervisor_ends_what_would_run_otherwise_today(folder):
    group_in(folder).keep([WEB, NODE], 0)
    before = pids(folder)
    following = group_in(folder)
    other = replace(WEB, depends_on="another release")
    following.adopt([other, NODE], 0)
    until(lambda: following.end_unlike([other, NODE], 0))
    assert pids(folder) == {"node": before["node"]}


def test_one_that_nobody_knows_any_more_is_ended(folder):
    group_in(folder).keep([Child(name="retired", command=WAITS)], 0)
    following = group_in(folder)
    following.adopt([WEB], 0)
    until(lambda: following.end_unlike([WEB], 0))
    assert pids(folder) == {}


def test_records_of_what_is_gone_are_forgotten(folder):
    group = group_in(folder)
    group.keep([WEB], 0)
    text = (folder / "run" / "web.json").read_text()
    until(lambda: group.end(0))
    (folder / "run" / "web.json").write_text(text)
    assert group_in(folder).adopt([WEB], 0) == []
    assert pids(folder) == {}


def test_the_end_goes_by_stages_the_highest_first(folder):
    asked: list[str] = []
    group = group_in(folder)
    group.keep([WEB, NODE], 0)

    def ended() -> bool:
        alive = pids(folder)
        done = group.end(1)
        asked.extend(name for name in alive if name not in pids(folder))
        return done

    until(ended)
    assert asked == ["node", "web"]


def test_one_that_keeps_dying_is_named(folder):
    group = group_in(folder)
    broken = Child(name="beat", command=("/nowhere/at/all",))
    group.keep([WEB, broken], 0)
    assert group.failing(2) is None
    group.keep([WEB, broken], 5)
    assert group.failing(2).child.name == "beat"


def test_the_examples_children_are_wanted_while_its_flag_exists(tmp_path):
    site = Site(folder=tmp_path, root=tmp_path, host="127.0.0.1", port=8000)
    usual = {child.name for child in site.wanted("")}
    assert usual == {"web", "worker", "bench", "beat", "node"}
    (tmp_path / "example.json").write_text("{}")
    assert {child.name for child in site.wanted("")} - usual == {"node-example", "gateway"}
    (tmp_path / "example.json").unlink()
    (tmp_path / "example-llama.json").write_text("{}")
    assert {child.name for child in site.wanted("")} - usual == {"node-llama", "gateway-llama"}
    (tmp_path / "example-llama.json").unlink()
    assert {child.name for child in site.wanted("")} == usual


def test_the_hosts_name_stays_what_it_was_at_the_first_start(tmp_path, monkeypatch):
    monkeypatch.setattr("platform.node", lambda: "collider")
    assert node_name(tmp_path) == "collider"
    monkeypatch.setattr("platform.node", lambda: "renamed")
    assert node_name(tmp_path) == "collider"


def test_no_secret_stands_on_a_command_line_or_in_a_record(tmp_path, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://u:hunter2@db/x")
    site = Site(folder=tmp_path, root=tmp_path, host="127.0.0.1", port=8000)
    for child in site.wanted(site.state_now("redis://:hunter3@127.0.0.1:1/0")):
        assert "hunter" not in repr(child)


def test_another_setting_or_source_file_is_another_state(tmp_path, monkeypatch):
    site = Site(folder=tmp_path, root=tmp_path, host="127.0.0.1", port=8000)
    (tmp_path / "capacity").mkdir()
    before = site.state_now("redis://a")
    assert site.state_now("redis://a") == before
    (tmp_path / "capacity" / "new.py").write_text("")
    with_file = site.state_now("redis://a")
    monkeypatch.setenv("LLMGW_PASS_SECONDS", "7")
    assert len({before, with_file, site.state_now("redis://a"), site.state_now("redis://b")}) == 4


def test_engines_are_found_in_the_state_of_every_node(tmp_path):
    path = tmp_path / "node" / "a" / "replicas" / "chat-1.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert engines(tmp_path) == [path]
