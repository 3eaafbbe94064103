"""Rules of a sizing, each on a small fleet."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from capacity.domain.sizing import WrongQuestion, question_of, target_document, target_table
from capacity.tests.builders import ago, measurement, node, ready, replica
from capacity.tests.sizing import MEASURED, TWO, adds, ask, fleet, kinds


class TestDemand:
    @pytest.mark.parametrize(
        ("words", "unit", "amount"),
        [
            ({"tokens_per_second": "8000"}, "tokens_per_second", 8000),
            ({"requests_per_second": 12, "output_tokens": 600}, "tokens_per_second", 7200),
            ({"in_flight": 12.5}, "in_flight", Fraction(25, 2)),
            ({"users": 2880, "requests_per_user_day": 10, "output_tokens": 100}, "tokens_per_second", 200),
            (
                {"users": 2880, "requests_per_user_day": 10, "output_tokens": 100, "hours": 24, "peak": 3},
                "tokens_per_second",
                100,
            ),
        ],
    )
    def test_each_way_to_say_it_is_one_amount(self, words: dict[str, Any], unit: str, amount: Any) -> None:
        question = question_of(words)
        assert (question.unit, question.amount) == (unit, amount)

    @pytest.mark.parametrize(
        ("words", "key"),
        [
            ({}, "demand"),
            ({"in_flight": 1, "users": 1}, "demand"),
            ({"requests_per_second": 1}, "output_tokens"),
            ({"in_flight": 1, "output_tokens": 5}, "output_tokens"),
            ({"in_flight": 0}, "in_flight"),
            ({"in_flight": -1}, "in_flight"),
            ({"in_flight": "nan"}, "in_flight"),
            ({"in_flight": True}, "in_flight"),
            ({"in_flight": "1e9"}, "in_flight"),
            ({"in_flight": "9" * 5000}, "in_flight"),
            ({"in_flight": [1]}, "in_flight"),
            ({"users": 10**12, "requests_per_user_day": 10**12, "output_tokens": 10**12}, "requests_per_second"),
            ({"users": 1, "requests_per_user_day": 1, "output_tokens": 1, "hours": 25}, "hours"),
            ({"in_flight": 1, "headroom": "-5%"}, "headroom"),
            ({"in_flight": 1, "headroom": "20"}, "headroom"),
            ({"in_flight": 1, "spare": 1.5}, "spare"),
            ({"in_flight": 1, "room": "all"}, "room"),
            ({"in_flight": 1, "stale": "derate:2"}, "stale"),
            ({"in_flight": 1, "tight": "maybe"}, "tight"),
            ({"in_flight": 1, "profile": 3}, "profile"),
            ({"in_flight": 1, "scope": 3}, "scope"),
            ({"in_flight": 1, "colour": "red"}, "colour"),
        ],
    )
    def test_a_wrong_question_is_refused_by_key(self, words: dict[str, Any], key: str) -> None:
        with pytest.raises(WrongQuestion) as wrong:
            question_of(words)
        assert wrong.value.key == key
        assert len(wrong.value.sentence) < 300

    def test_what_is_covered_and_lacks_a_spare_one_says_so(self) -> None:
        answer = ask(fleet(chat={"max_replicas": 2}), in_flight=100, spare=2)
        assert (answer.verdict, answer.is_covered) == ("partial", True)
        assert "the demand is covered, and not all spare ones find a place" in target_document(answer)["sentence"]

    def test_headroom_is_covered_and_not_counted_in_the_share(self) -> None:
        answer = ask(fleet(), in_flight=100, headroom="30%")
        assert adds(answer) == {"big": 2}
        assert (answer.served, answer.share, answer.verdict) == (200, 1, "fits")

    def test_every_default_is_printed_back(self) -> None:
        found = target_document(ask(fleet(), users=10, requests_per_user_day=1, output_tokens=100))
        assert found["asked"] == {"users": 10, "requests_per_user_day": 1, "hours": 8, "peak": 2, "output_tokens": 100}
        assert found["options"] == {
            "scope": None,
            "headroom": "0%",
            "spare": 0,
            "room": "now",
            "profile": [],
            "stale": "exclude",
            "tight": False,
        }


class TestWhatExists:
    def test_ready_and_starting_replicas_count_first(self) -> None:
        there = [*ready(0, profile="big"), replica("s", profile="big", state="starting", since=ago(5), nodes=["n1"])]
        answer = ask(fleet(replicas=there), in_flight=300)
        assert [(row.profile, row.have, row.add) for row in answer.rows] == [("big", 2, 1)]
        assert "has 2 and needs 3 replicas (+1: 1 × big)" in target_table(answer)

    def test_draining_stuck_and_unready_ones_serve_nothing_and_hold_their_hardware(self) -> None:
        there = [
            replica("d", profile="big", state="draining"),
            replica("s", profile="big", state="starting", since=ago(7200)),
            replica("u", profile="big", state="unready", since=ago(10)),
        ]
        answer = ask(fleet(replicas=there), in_flight=200)
        assert (answer.verdict, adds(answer), answer.have) == ("partial", {"big": 1}, 0)
        assert any("1 draining replica" in note for note in answer.notes)
        assert any("2 replicas stuck or not ready" in note for note in answer.notes)

    def test_enough_is_there(self) -> None:
        answer = ask(fleet(replicas=ready(0, profile="big")), in_flight=100)
        assert (answer.verdict, answer.added) == ("fits", 0)
        assert target_table(answer).startswith("Fits as it is: 1 replica of chat is there")

    def test_what_will_be_replaced_is_named(self) -> None:
        nodes = [node(units=8), node("n2", 8, schedulable=False)]
        answer = ask(fleet(replicas=ready(0, profile="big", nodes=["n2"]), nodes=nodes))
        assert any("1 replica counted that will be replaced" in note for note in answer.notes)


class TestVerdicts:
    def test_unknown_where_nothing_is_measured(self) -> None:
        answer = ask(fleet(measurements=[]))
        assert (answer.verdict, kinds(answer), answer.missing) == ("unknown", {"unmeasured"}, ())

    def test_none_where_all_miss_the_slo_even_alone(self) -> None:
        rows = [measurement(0, profile="big"), measurement(0, profile="small")]
        answer = ask(fleet(measurements=rows))
        assert (answer.verdict, kinds(answer)) == ("none", {"slo"})

    @pytest.mark.parametrize("store", ["replicas", "quotas", "measurements", "nodes"])
    def test_unknown_where_a_store_could_not_be_read(self, store: str) -> None:
        answer = ask(fleet(**{store: None}))
        assert (answer.verdict, answer.served) == ("unknown", 0)
        assert "unknown" in kinds(answer)
        assert any(store in note for note in answer.notes)

    def test_nothing_without_a_profile(self) -> None:
        answer = ask(fleet(profiles=[], measurements=[]))
        assert (answer.verdict, answer.rows) == ("none", ())
        assert "no profile that may be started" in target_table(answer)

    def test_profiles_that_take_no_new_ones_bind(self) -> None:
        answer = ask(fleet(profiles=[{**row, "state": "no_new"} for row in TWO]))
        assert (answer.verdict, kinds(answer)) == ("none", {"not_active"})

    @pytest.mark.parametrize("tokens", [0, 0.000001, 100.5, 1823.456, 10**12])
    def test_requests_in_flight_are_sized_alike_whatever_decimals_tokens_have(self, tokens: float) -> None:
        rows = [{**row, "tokens_per_second": tokens} for row in MEASURED if row["profile"] == "big"]
        found = ask(fleet(measurements=rows), in_flight=150, profile="big")
        assert (found.verdict, found.served, adds(found)) == ("fits", 200, {"big": 2})

    def test_tokens_are_not_known_of_a_measurement_without_any(self) -> None:
        rows = [{**row, "tokens_per_second": 0} for row in MEASURED]
        assert ask(fleet(measurements=rows), tokens_per_second=10).verdict == "unknown"
        assert ask(fleet(measurements=rows), in_flight=10).verdict == "fits"


class TestEvidence:
    STALE = [{**row, "status": "stale"} for row in MEASURED]

    def test_stale_evidence_is_left_out(self) -> None:
        answer = ask(fleet(measurements=self.STALE))
        assert answer.verdict == "unknown"
        assert any("stale and left out" in note for note in answer.notes)

    def test_or_counts_a_share_existing_ones_too(self) -> None:
        answer = ask(fleet(measurements=self.STALE, replicas=ready(0, profile="big")), in_flight=80, stale="derate:0.8")
        assert (answer.verdict, answer.served, answer.added) == ("fits", 80, 0)
        assert [row.measured for row in answer.rows] == ["stale"]

    def test_or_counts_whole(self) -> None:
        assert adds(ask(fleet(measurements=self.STALE), in_flight=100, stale="use")) == {"big": 1}
