"""The one table of words: complete, plain, and used for every sentence of a decision."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from capacity.domain.phrases import decimal, names, number, percent, stop_phrase
from capacity.domain.reasons import BRAKES, LIMITS, PROBLEMS, REASONS, Word
from capacity.domain.types import LimitedBy
from capacity.tests.builders import Document, ago, decision_of, fleet, measurement, node, ready, replica

ADD = "below_min wake over_capacity reclaim_fill evacuate measure"
REMOVE = "above_max rest_under_threshold idle start_timeout evacuate measure reclaimed over_limit"
HOLD = """
steady starting_covers rest_over_threshold survivor_over_threshold at_min at_max cooldown draining idle_wait
metrics_unknown unmeasured no_room at_limit guarantee_reserved awaiting_reclaim not_active not_removable
policy_unavailable inventory_unknown room_unknown bounds_conflict paused lease_lost
"""
PROBLEM = """
cycle unknown_parent assumed_funding limit_below_guarantee cut scaled guarantee_not_leaf no_owner unknown_node
hotspot unknown_push disagree
other_writer node_silent node_lost engine_silent copied_database another_installation older_backup removals_rest invalid_row
optimistic off_shape
invalid_report reported_twice shared_machine unknown_product
"""
LIMIT = "limit room max_replicas guarantee_reserved step unmeasured unable not_active backoff unknown brake"


@pytest.mark.parametrize(("outcome", "codes"), [("add", ADD), ("remove", REMOVE), ("hold", HOLD)])
def test_every_reason_of_an_outcome_is_in_the_table_and_no_other(outcome: str, codes: str) -> None:
    assert {code for code, word in REASONS.items() if outcome in word.outcomes} == set(codes.split())


def test_every_problem_and_limit_is_in_the_table_and_no_other() -> None:
    assert set(PROBLEMS) == set(PROBLEM.split())
    assert set(LIMITS) == set(LIMIT.split())


@pytest.mark.parametrize(
    "word", [*REASONS.values(), *PROBLEMS.values(), *LIMITS.values(), *BRAKES.values()], ids=lambda word: word.code
)
def test_words_are_whole_sentences_without_letters_of_formulas(word: Word) -> None:
    assert word.title[0].isupper()
    assert word.sentence[0].isupper()
    assert word.sentence.endswith(".")
    assert not re.search(r"\b(D|C|E|tier|founding rule)\b", word.title + " " + word.sentence)


SENTENCES: list[tuple[Document, str]] = [
    (
        fleet(ready(3, 4)),
        "Without r0: at most 7 requests in the last 300 s, not under 70 % of the 10 that the others were measured to serve, "
        "which is 7.",
    ),
    (fleet(ready(1, None)), "The load of r1 is not known, so nothing is taken back."),
    (
        fleet(ready(1), chat={"held_requests": None}),
        "How many requests are held at the gateway is not known, so nothing is taken back.",
    ),
    (fleet(ready(1), chat={"demand_peak": "?"}), "The highest load of the window is not known, so nothing is taken back."),
    (fleet(ready(1, 1), measurements=None), "The measurements could not be read, so nothing is taken back."),
    (
        fleet(ready(1, 1), chat={"last_change_at": ago(20)}),
        "The last change was 20 s ago; one is taken back after 300 s at the earliest.",
    ),
    (fleet(ready(1, 1), chat={"demand_seconds": 20}), "Only 20 s of the last 300 s of load are recorded."),
    (
        fleet(ready(20), units=1),
        "20 requests in flight are more than the 10 that 1 ready replica was measured to serve within the SLO. More is needed, "
        "but no node has the room. In the way: gpu/h100 has 0 free, at most 0 on one node.",
    ),
    (
        fleet([*ready(11), replica("d", state="draining")]),
        "11 requests in flight are more than the 10 that 1 ready replica was measured to serve within the "
        "SLO; taking back d, still draining.",
    ),
    (fleet(chat={"min_replicas": 2}), "0 replicas live, and the minimum is 2; adding 2 of p (1 gpu/h100 each on n1 ×2)."),
    (
        fleet([replica("s", state="starting", since=ago(900))], chat={"min_replicas": 0}),
        "s never became ready in time and is ended.",
    ),
    (
        fleet(ready(0, nodes=["old"]), nodes=[node(), node("old", schedulable=False)]),
        "r0 must leave its place and the rest cannot do without it; "
        "adding 1 of p (1 gpu/h100 on n1); it is drained when that one is ready.",
    ),
    (fleet(ready(0), measurements=[measurement(status="assumed")]), "1 replica live; 1 must stay."),
    (
        fleet([replica("s", state="starting", since=ago(9))], chat={"held_requests": 8}),
        "8 requests held at the gateway will be served by the 10 that 1 starting replica was measured to serve.",
    ),
    (
        fleet([replica("s", state="starting", since=ago(9))], chat={"held_requests": 12}, units=1),
        "12 requests held at the gateway are more than the 10 that 1 starting replica was measured to serve. More is needed, "
        "but no node has the room. In the way: gpu/h100 has 0 free, at most 0 on one node.",
    ),
    (
        fleet([replica("d", state="unready", since=ago(9))], chat={"held_requests": 12}, units=1),
        "12 requests held at the gateway and no replica is ready. More is needed, "
        "but no node has the room. In the way: gpu/h100 has 0 free, at most 0 on one node.",
    ),
    (
        fleet(ready(1, 1)),
        "Without r0: at most 2 requests in the last 300 s, under 70 % of the 10 that the others were measured to serve, "
        "which is 7: enough, so it goes.",
    ),
    (fleet(None), "The list of running replicas could not be read, so everything holds."),
]


@pytest.mark.parametrize(("document", "sentence"), SENTENCES)
def test_the_sentence_has_the_numbers_that_decided(document: Document, sentence: str) -> None:
    assert decision_of(document)["why"] == sentence


def test_numbers_read_as_people_write_them() -> None:
    assert (number(1, "replica"), number(2, "replica"), number(0, "replica")) == ("1 replica", "2 replicas", "0 replicas")
    assert (percent(Fraction(7, 10)), percent(Fraction(2, 3)), percent(Fraction(1))) == ("70 %", "66.7 %", "100 %")
    assert (decimal(Fraction(266, 10)), decimal(Fraction(27))) == ("26.6", "27")
    assert names(list("abcdef")) == "a, b, c, d and 2 more"


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("limit", {"scope": "{x}", "target": "gpu", "limit": 1, "used": 1}),
        ("guarantee_reserved", {"scope": "beta", "units": 4}),
        ("backoff", {"profile": "p", "until": "2026-11-30T12:00:00Z"}),
        ("unable", {"profile": "p"}),
        ("unknown", {"store": "nodes"}),
    ],
)
def test_every_kind_of_limit_has_a_phrase_with_its_facts(kind: str, facts: dict[str, str | int]) -> None:
    phrase = stop_phrase(LimitedBy(kind=kind, facts=facts))
    assert all(str(value) in phrase for value in facts.values())


def test_the_end_of_a_rest_is_said_to_the_second() -> None:
    stop = LimitedBy(kind="backoff", facts={"profile": "p", "until": "2026-11-30T12:00:00.363156Z"})
    assert stop_phrase(stop) == "p failed to run there and rests until 2026-11-30T12:00:00Z"
