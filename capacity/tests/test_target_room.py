"""Room, limits, bounds and cost of a sizing, and its command."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from capacity.domain import parse_snapshot
from capacity.domain.sizing import WrongQuestion, target_document, target_table, withheld
from capacity.domain.sizing.cost import UnitPrice, cost_of, money
from capacity.domain.sizing.document import cost_sentence
from capacity.domain.sizing.nodes import node_rows
from capacity.target_file import run
from capacity.tests.builders import ago, model, node, profile, ready, replica
from capacity.tests.sizing import MEASURED, TWO, adds, ask, fleet, kinds, scoped


class TestSpareAndBounds:
    def test_spare_ones_come_once_it_is_covered_and_count_as_served(self) -> None:
        answer = ask(fleet(), in_flight=100, spare=2)
        assert (answer.verdict, adds(answer), answer.served) == ("fits", {"big": 3}, 300)

    def test_no_room_for_them_is_partial_and_says_what_is_missing(self) -> None:
        answer = ask(fleet(nodes=[node(units=2)]), in_flight=100, spare=1)
        assert (answer.verdict, answer.share) == ("partial", 1)
        assert target_document(answer)["missing"] == [{"resource": "gpu/h100", "units": 2, "on_one_node": 2}]

    def test_the_maximum_binds_and_what_it_would_have_to_be_is_said(self) -> None:
        answer = ask(fleet(chat={"max_replicas": 1}), in_flight=300)
        assert (answer.verdict, kinds(answer), answer.raise_max_to) == ("partial", {"max_replicas"}, 3)
        assert answer.missing == ()

    def test_the_step_limit_does_not_bind(self) -> None:
        answer = ask(fleet(nodes=[node(units=20)]), in_flight=900)
        assert adds(answer) == {"big": 9}
        assert any("in 3 passes" in note for note in answer.notes)

    def test_the_minimum_does_not_raise_it(self) -> None:
        answer = ask(fleet(chat={"min_replicas": 3}), in_flight=100)
        assert answer.added == 1
        assert any("at least 3 replicas" in note for note in answer.notes)
        assert answer.holds_until is None

    def test_the_hold_line_is_the_largest_whole_demand_under_it(self) -> None:
        answer = ask(fleet(profiles=TWO[:1], measurements=[{**MEASURED[0], "max_concurrency": 128}]), in_flight=512)
        assert (answer.hold_line, answer.holds_until) == (Fraction(2688, 10), 268)
        assert ask(fleet(), in_flight=200).holds_until == 69

    def test_hosts_of_one_replica_are_named_together(self) -> None:
        nodes = [node("n1", 2), node("n2", 2), node("n3", 1)]
        found = target_document(ask(fleet(nodes=nodes, profiles=[profile("big", units=2, hosts=2)], measurements=MEASURED[:1])))
        assert found["plan"][0] | {"nodes": [["n1", "n2"]], "units": 4} == found["plan"][0]

    def test_a_node_that_rests_from_failures_is_left_out(self) -> None:
        rests = [{"model": "chat", "profile": name, "node": "n1", "until": ago(-60)} for name in ("big", "small")]
        answer = ask(fleet(backoffs=rests))
        assert (answer.verdict, "backoff" in kinds(answer)) == ("none", True)


class TestRoomAndLimits:
    def test_total_room_counts_no_other_model(self) -> None:
        others = [replica(f"o{n}", model="other", profile="one") for n in range(8)]
        held = {
            "models": [model(min_replicas=0), model("other")],
            "profiles": [*TWO, profile("one", model="other")],
            "replicas": others,
        }
        now = ask(fleet(**held))
        assert (now.verdict, kinds(now)) == ("none", {"room"})
        assert any("--room total" in note for note in now.notes)
        assert ask(fleet(**held), in_flight=100, room="total").verdict == "fits"

    def test_reclaim_takes_nothing_back_yet_and_says_so(self) -> None:
        answer = ask(scoped(2), in_flight=100, room="reclaim")
        assert any("Nothing may be taken back" in note for note in answer.notes)

    def test_a_limit_stands_with_its_use_before_and_after(self) -> None:
        answer = ask(scoped(4, used=1), in_flight=200)
        assert [(row.scope, row.used, row.after, row.limit, row.borrowed) for row in answer.path] == [("org", 1, 4, 4, None)]
        assert target_document(answer)["missing"] == [{"scope": "org", "target": "gpu/h100", "limit": 2}]

    def test_another_scope_pays_for_what_is_added(self) -> None:
        answer = ask(scoped(0), in_flight=100, scope="rich")
        assert (answer.verdict, answer.path) == ("fits", ())
        with pytest.raises(WrongQuestion, match="no scope gone"):
            ask(scoped(0), in_flight=100, scope="gone")

    def test_the_use_of_the_paying_scope_counts(self) -> None:
        document = scoped(8, used=1)
        document["quotas"].append({"scope": "rich", "target": "gpu/h100", "limit": 2})
        document["models"][1]["scope"] = "rich"
        answer = ask(document, in_flight=100, scope="rich")
        assert (adds(answer), [(row.scope, row.used, row.after) for row in answer.path]) == ({"small": 1}, [("rich", 1, 2)])

    def test_only_named_profiles_are_started(self) -> None:
        assert adds(ask(fleet(), in_flight=100, profile=["small"])) == {"small": 3}
        with pytest.raises(WrongQuestion, match="no profile gone"):
            ask(fleet(), in_flight=100, profile="gone")

    def test_tight_replaces_the_last_one_by_the_smallest_that_does(self) -> None:
        answer = ask(fleet(), in_flight=130, tight=True)
        assert adds(answer) == {"big": 2}
        assert [(row.profile, row.add) for row in answer.tight or ()] == [("big", 1), ("small", 1)]
        assert "tight: 1 × big, 1 × small" in target_table(answer)

    def test_another_profile_that_would_do_it_alone_is_named(self) -> None:
        answer = ask(fleet(), in_flight=100)
        assert [(one.profile, one.add, one.verdict) for one in answer.alternatives] == [("small", 3, "fits")]

    def test_a_foreign_scope_is_withheld(self) -> None:
        answer = withheld(ask(scoped(2), in_flight=200), lambda scope: scope == "team", lambda scope: scope == "team")
        text = json.dumps(target_document(answer), ensure_ascii=False) + target_table(answer)
        assert "org" not in text
        assert answer.missing[0].limit == 2  # type: ignore[union-attr]

    def test_the_nodes_are_drawn_as_the_plan_leaves_them(self) -> None:
        document = fleet(nodes=[node("n1", 3), node("n2", 2, schedulable=False)], replicas=ready(0, profile="small"))
        rows = node_rows(parse_snapshot(document), ask(document, in_flight=140))
        assert [(row.node, row.held, row.added, row.free, row.takes_new) for row in rows] == [
            ("n1", 1, 2, 0, True),
            ("n2", 0, 0, 2, False),
        ]


class TestCost:
    PRICES = {"gpu/h100": UnitPrice(per_unit_hour=Decimal("2.5"), currency="EUR")}

    def test_an_hour_and_a_million_tokens(self) -> None:
        cost, note = cost_of(ask(fleet(replicas=ready(0, profile="big")), in_flight=200), self.PRICES)
        assert cost is not None and note == ""
        assert (cost.added_per_hour, cost.whole_per_hour) == (5, 10)
        assert (
            cost_sentence(cost) == "It costs 5.00 EUR an hour more, 10.00 in all: 1.39 EUR for a million output tokens when full."
        )
        assert cost.per_million_output_tokens == Fraction(10 * 10**6, 2000 * 3600)

    def test_a_missing_price_and_two_currencies_are_said(self) -> None:
        assert cost_of(ask(fleet()), {})[1] == "What it costs is not known: no price is set for gpu/h100."
        assert cost_of(ask(fleet(profiles=[], measurements=[])), {}) == (None, "")

    @pytest.mark.parametrize(
        ("value", "text"), [(Fraction(12345, 10), "1,234.50"), (Fraction(23, 10000), "0.00230"), (Fraction(0), "0.00")]
    )
    def test_money_is_written_as_people_read_it(self, value: Fraction, text: str) -> None:
        assert money(value) == text


class TestCommand:
    def status(self, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
        try:
            status = run(words)
        except SystemExit as ended:
            status = int(ended.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    @pytest.fixture
    def file(self, tmp_path: Path) -> str:
        path = tmp_path / "snapshot.json"
        path.write_text(json.dumps(fleet()))
        return str(path)

    @pytest.mark.parametrize(
        "words",
        [
            ("chat",),
            ("chat", "--in-flight", "x"),
            ("chat", "--in-flight", "1", "--nonsense"),
            ("chat", "--in-flight", "1", "--requests-per-second", "3"),
            ("gone", "--in-flight", "1"),
            ("chat", "--in-flight", "1", "--profile", "gone"),
            ("--in-flight", "1"),
        ],
    )
    def test_wrong_use_ends_with_1_and_nothing_on_stdout(
        self, words: tuple[str, ...], file: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        status, out, err = self.status(capsys, *words, "--snapshot", file, "--json")
        assert (status, out) == (1, "")
        assert err.count("\n") == 1

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "llmgw.snapshot/1"}'])
    def test_an_invalid_snapshot_ends_with_1(self, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "bad.json"
        path.write_text(text)
        status, out, err = self.status(capsys, "chat", "--in-flight", "1", "--snapshot", str(path))
        assert (status, out, bool(err)) == (1, "", True)
        assert self.status(capsys, "chat", "--in-flight", "1", "--snapshot", str(path) + "x")[0] == 1

    def test_people_read_the_verdict_first(self, file: str, capsys: pytest.CaptureFixture[str]) -> None:
        status, out, _ = self.status(capsys, "chat", "--in-flight", "100", "--snapshot", file)
        assert status == 0
        assert out.startswith("Fits: chat has 0 and needs 1 replica (+1: 1 × big), serving 100 of 100 requests in flight.\n")


def test_a_demand_beyond_all_counting_ends() -> None:
    answer = ask(fleet(nodes=[node(units=10**12)], chat={"max_replicas": 3}), in_flight=10**12)
    assert (answer.added, kinds(answer), answer.missing) == (3, {"max_replicas"}, ())
