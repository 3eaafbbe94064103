"""What the numbers of a sizing do not say by themselves, one sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from capacity.domain.phrases import decimal, names, number, percent
from capacity.domain.placement import Rating
from capacity.domain.sizing.ground import Ground
from capacity.domain.sizing.question import UNITS
from capacity.domain.sizing.types import Answer


def notes_of(ground: Ground, answer: Answer) -> Answer:
    """The answer with its notes."""
    return replace(answer, notes=tuple(_notes(ground, answer)))


def _notes(ground: Ground, answer: Answer) -> Iterator[str]:
    yield from _of_stores(ground)
    yield from _of_evidence(ground)
    yield from _of_what_exists(ground)
    yield from _of_the_passes(ground, answer)
    yield from _of_the_question(ground, answer)
    yield from _of_room(ground, answer)
    yield from _of_little(ground)
    yield from _of_routing(answer)


def _of_stores(ground: Ground) -> Iterator[str]:
    stores = [*ground.missing_stores, *(("nodes",) if ground.snapshot.nodes is None else ())]
    if stores:
        yield f"The {names(stores)} could not be read: nothing is said that depends on them."


def _of_evidence(ground: Ground) -> Iterator[str]:
    stale = [rating.name for rating in _shown(ground) if ground.evidence.get(rating.name) == "stale"]
    verb = "is" if len(stale) == 1 else "are"
    if stale and ground.question.stale == "exclude":
        yield f"The evidence of {names(stale)} is stale and left out; --stale use or --stale derate:0.8 counts it."
    elif stale and ground.question.stale == "derate":
        yield f"The evidence of {names(stale)} is stale and counts {percent(ground.question.derate)}."
    elif stale:
        yield f"{names(stale)} {verb} counted on stale evidence."
    assumed = [rating.name for rating in _shown(ground) if ground.evidence.get(rating.name) == "assumed"]
    if assumed:
        yield f"What {names(assumed)} serves is assumed and not measured."
    unmeasured = [r.name for r in _shown(ground) if r.concurrency is None and ground.evidence.get(r.name) is None]
    if unmeasured:
        yield f"{names(unmeasured)} {'is' if len(unmeasured) == 1 else 'are'} not measured, so nothing is placed there."
    speechless = [
        r.name for r in _shown(ground) if r.concurrency is None and ground.evidence.get(r.name) in ("current", "assumed")
    ]
    if speechless:
        yield f"The measurement of {names(speechless)} gives no output tokens a second."


def _shown(ground: Ground) -> Iterable[Rating]:
    return sorted(ground.own.ratings.values(), key=Rating.order)


def _of_what_exists(ground: Ground) -> Iterator[str]:
    counted = [replica for replica in ground.serving if ground.own.rating(replica).concurrency is None]
    if counted:
        yield f"{number(len(counted), 'replica')} of unmeasured profiles counted as serving nothing."
    if draining := len(ground.own.draining):
        yield f"{number(draining, 'draining replica')} counted as serving nothing; the hardware is held until the end."
    unfinished = len(ground.own.stuck) + len([r for r in ground.own.unready if r not in ground.own.stuck])
    if unfinished:
        yield f"{number(unfinished, 'replica')} stuck or not ready counted as serving nothing; the hardware is held."
    if tested := sum(1 for replica in ground.replicas.get(ground.model.name, ()) if replica.under_test):
        yield f"{number(tested, 'replica')} under test counted as serving nothing until given back."
    if leaving := len(_leaving(ground)):
        yield f"{number(leaving, 'replica')} counted that will be replaced: a cordoned node, a retired profile, or outdated."


def _leaving(ground: Ground) -> list[str]:
    cordoned = {node.name for node in ground.snapshot.nodes or () if not node.schedulable}
    return [
        replica.name
        for replica in ground.serving
        if replica.outdated or ground.own.rating(replica).profile.state == "retire" or not cordoned.isdisjoint(replica.nodes)
    ]


def _of_the_passes(ground: Ground, answer: Answer) -> Iterator[str]:
    model = ground.model
    if (passes := _passes(ground, answer.added)) > 1:
        most = ground.snapshot.settings.max_step_up
        yield f"{answer.added} are added in {passes} passes: a pass adds at most {most}, or as many as run."
    if model.min_replicas > ground.own.live + answer.added:
        yield f"The fleet keeps at least {number(model.min_replicas, 'replica')} (min_replicas), which this plan does not count."
    if model.bounds_conflict:
        yield "Its minimum is above its maximum: until that is mended no pass changes anything."
    elif model.mode in ("paused", "advise"):
        yield f"{model.name} is in mode {model.mode}: no pass starts this by itself."
    if answer.raise_max_to is not None:
        yield f"max_replicas is {model.max_replicas}: the rest would need {answer.raise_max_to}."


def _passes(ground: Ground, added: int) -> int:
    step, live, passes = ground.snapshot.settings.max_step_up, ground.own.live, 0
    while added > 0 and max(step, live) > 0:
        most = max(step, live)
        added, live, passes = added - most, live + most, passes + 1
    return passes


def _of_the_question(ground: Ground, answer: Answer) -> Iterator[str]:
    question, owner = ground.question, ground.model.scope
    if question.scope is not None and question.scope != owner:
        yield f"What is added counts against {question.scope}; what {ground.model.name} holds counts against {owner or 'nobody'}."
    elif owner is None:
        yield f"{ground.model.name} belongs to no scope: no limit binds it."
    if question.room == "reclaim":
        yield "Nothing may be taken back: no scope is entitled to more than it holds, since guarantees do not bind yet."
    elif question.room == "total":
        yield "The room is that of empty hardware: what other models hold is counted as free, while the limits stand as used."
    if question.profiles:
        yield f"Only {names(question.profiles)} may be started."
    if answer.path:
        yield "What is borrowed is not known: guarantees do not bind yet."


def _of_room(ground: Ground, answer: Answer) -> Iterator[str]:
    if answer.on_empty_hardware is not None and answer.on_empty_hardware > answer.served:
        served = f"{decimal(answer.on_empty_hardware)} {UNITS[answer.question.unit]}"
        yield f"If no other model held hardware {ground.model.name} could serve {served}: --room total."


def _of_little(ground: Ground) -> Iterator[str]:
    """In flight = requests a second × seconds a request, at the measured point of the first profile."""
    question = ground.question
    rating = next((r for r in ground.order if r.concurrency and r.tokens_per_unit), None)
    if rating is None or question.requests_per_second is None or question.output_tokens is None:
        return
    tokens = rating.tokens_per_unit * rating.units
    seconds = Fraction(rating.concurrency or 0) * question.output_tokens / tokens
    in_flight = seconds * question.requests_per_second
    yield (
        f"{decimal(question.requests_per_second)} requests a second of {decimal(question.output_tokens)} tokens are "
        f"{decimal(question.amount)} tokens/s; at {rating.name}'s measured point a request lasts {decimal(seconds)} s, "
        f"so {number(int(in_flight), 'request')} in flight."
    )


def _of_routing(answer: Answer) -> Iterator[str]:
    if answer.even_served is not None:
        even = f"{decimal(answer.even_served)} {UNITS[answer.question.unit]}"
        yield f"A router that gives each replica the same number would serve {even}; weights avoid that."
