"""A small real engine, llama.cpp, through its whole life: started, ready, asked, counted, drained."""

from __future__ import annotations

import json
import threading
import urllib.request
from typing import Any

import pytest

from capacity.llama import packages

from .rows import LLAMA
from .site import DEADLINE_SECONDS, LiveSite, until

SAMPLES = """SELECT s.demand_low, s.tokens_per_second FROM capacity_sample s JOIN capacity_languagemodel m ON m.id = s.model_id
             WHERE m.name = ? ORDER BY s.at DESC LIMIT 200"""


def ask(url: str, **more: Any) -> dict[str, Any]:
    """A chat completion, to its end."""
    document = {"model": LLAMA, "messages": [{"role": "user", "content": "Name three colours."}], **more}
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(document).encode(), head)
    with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
        return json.load(answer)


def samples(site: LiveSite) -> list[tuple[int, float | None]]:
    return site.ask(SAMPLES, LLAMA)


@pytest.mark.skipif(not packages.are_installed(), reason=packages.HOW)
def test_a_real_engine_is_started_asked_counted_and_drained(site: LiveSite) -> None:
    site.bounds(LLAMA, 2, 2)
    first, second = site.wait_for(2, LLAMA)
    assert until(lambda: site.endpoints()[LLAMA] == {first, second})

    said = ask(site.url(first), max_tokens=16)
    assert said["model"] == LLAMA
    assert said["choices"][0]["message"]["content"].strip()
    assert 0 < said["usage"]["completion_tokens"] <= 16

    long = {"max_tokens": 200, "ignore_eos": True}
    asking = [threading.Thread(target=ask, args=(site.url(name),), kwargs=long) for name in (first, first, second)]
    for thread in asking:
        thread.start()
    until(lambda: max(demand for demand, _ in samples(site)) == 3, lambda: str(samples(site)[:5]))
    for thread in asking:
        thread.join(DEADLINE_SECONDS)
    # its counters move when a request ends
    until(lambda: any(rate for _, rate in samples(site)), lambda: str(samples(site)[:5]))
    until(lambda: samples(site)[0][0] == 0, lambda: str(samples(site)[:5]))

    site.bounds(LLAMA, 1, 1)
    (left,) = site.wait_for(1, LLAMA)
    drains = "SELECT state FROM capacity_action WHERE op = 'drain' AND replica_name IN (?, ?)"
    assert left in {first, second}
    assert until(lambda: site.ask(drains, first, second) == [("done",)], site.story)
