"""What asking registered engines told, in Redis: written by the task that asks, read by the pass (`AnswerSource`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from redis import Redis
from redis.exceptions import RedisError

from capacity.ports import Answer
from capacity.sources.store import read_rows, read_time


class AnswerStore:
    """A hash a pool, engine → JSON. It holds what was asked last: an engine that is forgotten goes with the next round."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def write(self, pool: str, found: Mapping[str, str], now: datetime) -> bool:
        """A round: engine → empty (it answered) or why not. A failure keeps the last answer and when failing began.
        False where Redis did not take it."""
        try:
            known = _answers(read_rows(self._redis, _key(pool)))
            rows = {name: _json(_after(known.get(name), reason, now)) for name, reason in found.items()}
            with self._redis.pipeline(transaction=True) as pipe:
                pipe.delete(_key(pool))
                if rows:
                    pipe.hset(_key(pool), mapping=rows)
                pipe.execute()
        except RedisError:
            return False
        return True

    def answers(self, pool: str) -> Mapping[str, Answer] | None:
        """Engine → what asking it told; None where Redis cannot be read."""
        try:
            return _answers(read_rows(self._redis, _key(pool)))
        except RedisError:
            return None


def _after(last: Answer | None, reason: str, now: datetime) -> Answer:
    if not reason:
        return Answer(answered_at=now)
    if last is None:
        return Answer(failed_since=now, reason=reason)
    return Answer(answered_at=last.answered_at, failed_since=last.failed_since or now, reason=reason)


def _key(pool: str) -> str:
    return f"llmgw:answers:{pool}"


def _json(answer: Answer) -> str:
    return json.dumps(
        {
            "answered_at": answer.answered_at and answer.answered_at.isoformat(),
            "failed_since": answer.failed_since and answer.failed_since.isoformat(),
            "reason": answer.reason,
        }
    )


def _answers(rows: Mapping[str, object]) -> dict[str, Answer]:
    return {
        name: Answer(
            answered_at=read_time(row.get("answered_at")),
            failed_since=read_time(row.get("failed_since")),
            reason=str(row.get("reason") or ""),
        )
        for name, row in rows.items()
        if isinstance(row, dict)
    }
