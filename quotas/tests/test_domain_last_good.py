"""The view of quotas and measurements: at most 30 s old, and never empty-handed when the store fails."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from quotas.domain.last_good import LastGood

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


class Store:
    def __init__(self) -> None:
        self.answer: object = "one"
        self.asked = 0

    def __call__(self, _held: object) -> object:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Memory:
    def __init__(self) -> None:
        self.kept: tuple[object, datetime] | None = None

    def recall(self):
        return self.kept

    def keep(self, value, read_at):
        self.kept = (value, read_at)


def test_the_store_is_asked_again_only_once_the_answer_is_30_seconds_old():
    store = Store()
    view = LastGood(store)
    assert [view.get(at(s)).value for s in (0, 29.9)] == ["one", "one"]
    assert store.asked == 1
    store.answer = "two"
    assert view.get(at(30)).value == "two"
    assert store.asked == 2


def test_a_failure_keeps_the_last_good_answer_with_its_age_and_error():
    store = Store()
    view = LastGood(store)
    view.get(at(0))
    store.answer = ConnectionError("gone")
    reading = view.get(at(31))
    assert (reading.value, reading.age_seconds(at(31)), reading.error) == ("one", 31, "ConnectionError: gone")


def test_after_a_failure_the_store_is_left_alone_for_30_seconds_however_often_the_view_is_asked():
    store = Store()
    view = LastGood(store)
    store.answer = ConnectionError("gone")
    for second in range(30):
        view.get(at(second))
    assert store.asked == 1
    store.answer = "back"
    assert view.get(at(30)).value == "back"


def test_never_loaded_is_no_value_and_not_an_empty_one():
    store = Store()
    store.answer = ConnectionError("gone")
    reading = LastGood(store).get(at(0))
    assert (reading.value, reading.read_at, reading.age_seconds(at(0))) == (None, None, None)


def test_the_last_good_answer_outlives_the_process():
    store, memory = Store(), Memory()
    LastGood(store, memory).get(at(0))
    store.answer = ConnectionError("gone")
    reading = LastGood(store, memory).get(at(50))
    assert (reading.value, reading.age_seconds(at(50))) == ("one", 50)


def test_a_kept_answer_never_replaces_a_newer_one():
    store, memory = Store(), Memory()
    view = LastGood(store, memory)
    store.answer = "new"
    view.get(at(0))
    memory.kept = ("old", at(-500))
    store.answer = ConnectionError("gone")
    assert view.get(at(31)).value == "new"


def test_a_writer_makes_the_next_reader_ask():
    store = Store()
    view = LastGood(store)
    view.get(at(0))
    view.expire()
    store.answer = "two"
    assert view.get(at(1)).value == "two"


def test_concurrent_askers_share_one_read():
    started, finish = threading.Event(), threading.Event()
    asked = []

    def slow(_held: object) -> str:
        asked.append(1)
        started.set()
        finish.wait(10)
        return "one"

    view = LastGood(slow)
    answers: list[object] = []
    threads = [threading.Thread(target=lambda: answers.append(view.get(NOW).value)) for _ in range(5)]
    threads[0].start()
    started.wait(10)
    for thread in threads[1:]:
        thread.start()
    finish.set()
    for thread in threads:
        thread.join(10)
    assert (answers, len(asked)) == (["one"] * 5, 1)
