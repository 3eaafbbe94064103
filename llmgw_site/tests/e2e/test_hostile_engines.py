"""Engines that are well by their health page and lie, hang or flood at /metrics: their load is unknown, and nobody else's."""

from __future__ import annotations

from datetime import datetime

from capacity.sources.store import LoadStore

from .rows import MANNERS, POOL
from .site import LiveSite, until

SENTENCES = {
    "hang": "No complete answer within 3 s.",
    "html": "Answered HTML instead of metrics.",
    "big": "Answered with more than 2097152 bytes.",
}


def test_engines_of_bad_manners_have_no_known_load_and_hurt_no_other(site: LiveSite) -> None:
    for manner in MANNERS:
        site.bounds(manner, 1, 2)
    bad = {manner: site.wait_for(1, manner)[0] for manner in MANNERS}
    (good,) = site.wait_for(1)
    store = LoadStore(site.client())

    def failed(manner: str) -> tuple[str, datetime] | None:
        found = (store.failures(POOL) or {}).get(bad[manner])
        return (found.reason, found.at) if found else None

    first = {manner: until(lambda manner=manner: failed(manner)) for manner in SENTENCES}
    assert {manner: reason for manner, (reason, _) in first.items()} == SENTENCES
    nan = until(lambda: (store.loads(POOL) or {}).get(bad["nan"]))
    assert nan.in_flight is None
    # the reading of all of them ends, however the slowest one hangs: a later one follows, and another
    for _ in range(2):
        last = failed("hang")
        until(lambda last=last: failed("hang") != last)
    sample = (store.loads(POOL) or {})[good]
    until(lambda: (store.loads(POOL) or {})[good].sampled_at > sample.sampled_at)
    for manner in MANNERS:
        until(lambda manner=manner: "metrics_unknown" in {reason for _, reason, _ in site.why(manner)}, site.story)
    # the others are scaled as ever
    with site.requests(good, 3):
        assert good in site.wait_for(2)
    assert site.wait_for(1)
    assert {name: site.replicas(name) for name in MANNERS} == {manner: {name: "ready"} for manner, name in bad.items()}
