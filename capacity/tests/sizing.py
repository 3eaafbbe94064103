"""Small fleets to be sized: one model `chat` with a profile `big` (2 units, 100 in flight) and `small` (1 unit, 40)."""

from __future__ import annotations

from typing import Any

from capacity.domain import parse_snapshot
from capacity.domain.sizing import Answer, question_of, target
from capacity.tests.builders import measurement, model, node, profile, replica, snapshot

TWO = [profile("big", units=2, priority=1), profile("small", units=1, priority=1)]
MEASURED = [
    measurement(100, profile="big", tokens_per_second=1000),
    measurement(40, profile="small", tokens_per_second=400),
]


def fleet(*, chat: dict[str, Any] | None = None, **lists: Any) -> dict[str, Any]:
    kept = {"models": [model(**{"min_replicas": 0, **(chat or {})})], "profiles": TWO, "measurements": MEASURED}
    return snapshot(**{**kept, "nodes": [node(units=8)], **lists})


def ask(document: dict[str, Any], **words: Any) -> Answer:
    return target(parse_snapshot(document), "chat", question_of(words or {"in_flight": 100}))


def adds(answer: Answer) -> dict[str, int]:
    return {row.profile: row.add for row in answer.rows if row.add}


def kinds(answer: Answer) -> set[str]:
    return {stop.kind for stop in answer.binding}


def scoped(limit: int, used: int = 0, **more: Any) -> dict[str, Any]:
    other = [replica(f"o{n}", model="other", profile="one") for n in range(used)]
    return fleet(
        chat={"scope": "team"},
        models=[model(min_replicas=0, scope="team"), model("other", scope="team")],
        profiles=[*TWO, profile("one", model="other")],
        replicas=other,
        scopes=[{"name": "org", "parents": []}, {"name": "team", "parents": ["org"]}, {"name": "rich", "parents": []}],
        quotas=[{"scope": "org", "target": "gpu/h100", "limit": limit}],
        **more,
    )
