"""The one sentence of a decision, with its numbers, as an operator would say it on the phone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from capacity.domain.clock import seconds_since
from capacity.domain.giving.reclaim import Return
from capacity.domain.load import Tally
from capacity.domain.needs import Need
from capacity.domain.phrases import decimal, demand, giving, names, number, percent, served, stop_phrase, verb
from capacity.domain.reasons import REASONS
from capacity.domain.types import Action, LimitedBy, Outcome, Replica, Settings
from capacity.domain.victims import Victims, kept_capacity
from quotas.domain.types import Quota


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Everything that a sentence may name. `victim`: who goes, or was refused; `ended`: stuck ones that go."""

    outcome: Outcome
    reason: str
    tally: Tally
    found: Victims
    settings: Settings
    need: Need | None
    victim: Replica | None
    ended: Sequence[Replica]
    limited_by: tuple[LimitedBy, ...]
    measurements_known: bool
    measured: Sequence[Action] = ()
    """Starts for sweeps."""
    given_back: Sequence[str] = ()
    """Replicas that go after their sweep."""
    returned: Sequence[Return] = ()
    """Replicas that are given back for others."""
    over: tuple[Replica, Quota] | None = None
    """The replica that goes down to a limit, and the limit's row."""
    own: Replica | None = None
    """The replica that goes by the model's own rules."""


def why(story: Story) -> str:
    """The sentence for any outcome and reason that a plan can have."""
    special = _SENTENCES.get((story.outcome, story.reason))
    text = special(story) if special else REASONS[story.reason].sentence
    return f"{text}{_stopped(story)}{_aside(story)}{_ended(story)}".strip()


def _added(story: Story) -> str:
    need = story.need
    if need is None or not need.actions:
        return ""
    return _begun(story.tally, need.actions)


def _begun(tally: Tally, actions: Sequence[Action]) -> str:
    starts = [action for action in actions if action.op == "start"]
    back = [action.replica or "" for action in actions if action.op == "undrain"]
    parts = [f"taking back {names(back)}, still draining"] if back else []
    profiles = dict.fromkeys(action.profile for action in starts)
    parts += ["adding " + _starts(tally, [action for action in starts if action.profile == name]) for name in profiles]
    return "; " + ", ".join(parts)


def _starts(tally: Tally, starts: Sequence[Action]) -> str:
    profile = tally.ratings[starts[0].profile].profile
    nodes = Counter(node for action in starts for node in action.nodes)
    places = names([node if times == 1 or profile.hosts > 1 else f"{node} ×{times}" for node, times in nodes.items()])
    each = " each" if len(starts) > 1 or profile.hosts > 1 else ""
    return f"{len(starts)} of {profile.name} ({profile.units} {profile.resource}{each} on {places})"


def _over(story: Story) -> str:
    tally = story.tally
    if tally.ready or tally.starting:
        return f"{demand(tally)} {verb(tally)} more than {served(tally)}"
    return f"{demand(tally)} and no replica is ready"


def _over_capacity(story: Story) -> str:
    return f"{_over(story)}{_added(story)}."


def _below_min(story: Story) -> str:
    model, live = story.tally.model, story.tally.live
    return f"{number(live, 'replica')} live, and the minimum is {model.min_replicas}{_added(story)}."


def _wake(story: Story) -> str:
    held = story.tally.model.held_requests
    asked = f"{number(held, 'request')} held at the gateway" if held else "somebody asked for it just now"
    return f"Nothing runs and {asked}{_added(story)}."


def _reclaim_fill(story: Story) -> str:
    return f"{_over(story)}, and hardware is being given back{_added(story)}."


def _evacuate_add(story: Story) -> str:
    gone = "it is drained when that one is ready"
    return f"{_leaver(story)} and the rest cannot do without it{_added(story)}; {gone}."


def _evacuate_remove(story: Story) -> str:
    is_outdated = story.victim is not None and story.victim.outdated
    return f"{_leaver(story)} and the rest carries {_peak(story) if is_outdated else f'the {_high(story)} of now'}, so it goes."


def _need_unmet(story: Story) -> str:
    """More is needed, and nothing was given: what is asked, then what REASONS says of it."""
    need = story.need
    sentence = REASONS[story.reason].sentence
    if need is None:
        return sentence
    asked = {"below_min": _below_min, "wake": _wake, "evacuate": _must_leave}.get(need.reason, _over_capacity)(story)
    return f"{asked} {sentence}"


def _must_leave(story: Story) -> str:
    return f"{_leaver(story)} and the rest cannot do without it."


def _leaver(story: Story) -> str:
    is_outdated = story.victim is not None and story.victim.outdated
    return f"{_who(story)} {'runs what its profile was before' if is_outdated else 'must leave its place'}"


def _high(story: Story) -> str:
    high = story.tally.demand_high
    return "load" if high is None else number(high, "request")


def _peak(story: Story) -> str:
    peak = story.tally.peak
    return "the load" if peak is None else f"at most {number(peak, 'request')} in the last {story.tally.window_seconds} s"


def _line(story: Story) -> str:
    """70 % of the 38 that stay, and what that is."""
    if story.victim is None:
        return "the threshold"
    capacity = kept_capacity(story.found, story.victim)
    fraction = story.found.fraction
    return (
        f"{percent(fraction)} of the {capacity} that the others were measured to serve, which is {decimal(fraction * capacity)}"
    )


def _who(story: Story) -> str:
    return story.victim.name if story.victim else "one"


def _rest_under(story: Story) -> str:
    return f"Without {_who(story)}: {_peak(story)}, under {_line(story)}: enough, so it goes."


def _rest_over(story: Story) -> str:
    if story.victim is not None and story.victim.outdated:
        return f"{_leaver(story)} and stays for now: {_peak(story)}, more than {served(story.tally)}."
    return f"Without {_who(story)}: {_peak(story)}, not under {_line(story)}."


def _survivor_over(story: Story) -> str:
    fraction = percent(story.found.fraction)
    return f"With its share of {_who(story)}'s load one of the others would be at or over {fraction} of its own."


def _measure_add(story: Story) -> str:
    profiles = names([action.profile for action in story.measured])
    return f"A person asked for a sweep of {profiles}{_begun(story.tally, story.measured)}."


def _measure_remove(story: Story) -> str:
    gone = names(story.given_back)
    was = "was" if len(story.given_back) == 1 else "were"
    return f"{gone} {was} started for a sweep that is over, and nothing else would run there: drained."


def _reclaimed(story: Story) -> str:
    besides = "" if story.own is None else f" Besides, {story.own.name} goes: the rest does without it."
    return f"{_gives(story)}; {_no_threshold(story)}.{besides}"


def _gives(story: Story) -> str:
    given: dict[str, list[str]] = {}
    for back in story.returned:
        given.setdefault(back.asker, []).append(back.replica.name)
    return giving(given)


def _no_threshold(story: Story) -> str:
    return f"the {percent(story.found.fraction)} rule does not hold for that"


def _over_limit(story: Story) -> str:
    return f"{_too_much(story)}; {_no_threshold(story)}."


def _too_much(story: Story) -> str:
    if story.over is None:
        return REASONS[story.reason].sentence.rstrip(".")
    replica, row = story.over
    what = "its replicas" if row.model is not None else row.target
    return f"More is held than the limit {row.limit} of {row.scope} on {what} allows, so {replica.name} goes"


def _aside(story: Story) -> str:
    """What goes beside what is added."""
    if story.outcome != "add":
        return ""
    given = f" {_gives(story)}." if story.returned else ""
    return given + (f" {_too_much(story)}." if story.over is not None else "")


def _above_max(story: Story) -> str:
    most = story.tally.model.max_replicas
    return f"{number(story.tally.held, 'replica')} held, and the maximum is {most}; {_who(story)} goes."


def _at_min(story: Story) -> str:
    model = story.tally.model
    if model.min_replicas or not model.scale_to_zero:
        least = max(model.min_replicas, 1)
        return f"{number(story.tally.live, 'replica')} live; {least} must stay."
    if story.tally.starting:
        return "The last replica is still starting."
    return f"The last replica stays while there is demand ({_high(story)})."


def _cooldown(story: Story) -> str:
    tally, at = story.tally, story.found.at
    window = tally.window_seconds
    changed, covered = tally.model.last_change_at, tally.model.demand_seconds
    if changed is not None and seconds_since(changed, at) < window:
        return f"The last change was {seconds_since(changed, at)} s ago; one is taken back after {window} s at the earliest."
    return f"Only {covered} s of the last {window} s of load are recorded."


def _draining(story: Story) -> str:
    return f"{number(len(story.tally.draining), 'replica')} draining; the next is taken when that is over."


def _unknown(story: Story) -> str:
    tally = story.tally
    watched = (*tally.ready, *tally.unready, *(replica for replica in tally.stuck if replica.state == "unready"))
    unknown = sorted(replica.name for replica in watched if tally.loads[replica.name] is None)
    if unknown:
        return f"The load of {names(unknown)} is not known, so nothing is taken back."
    if tally.model.held_requests is None:
        return "How many requests are held at the gateway is not known, so nothing is taken back."
    return "The highest load of the window is not known, so nothing is taken back."


def _starting(story: Story) -> str:
    tally = story.tally
    if tally.demand_low > tally.capacity_ready:
        return f"{demand(tally)} will be served by {served(tally)}."
    return f"{number(len(tally.starting), 'replica')} starting; nothing is taken back before that is over."


def _start_timeout(story: Story) -> str:
    """What was needed besides, where anything was; `_ended` names the replicas."""
    if story.need is None:
        return ""
    return {"below_min": _below_min, "wake": _wake, "evacuate": _must_leave}.get(story.need.reason, _over_capacity)(story)


def _idle(story: Story) -> str:
    return f"No load and no request for more than {story.settings.idle_seconds} s; {_who(story)}, the last one, goes."


def _idle_wait(story: Story) -> str:
    return f"No load, but the last request, wake or start was not more than {story.settings.idle_seconds} s ago."


def _unmeasured(story: Story) -> str:
    if story.need is not None:
        return _need_unmet(story)
    if not story.measurements_known:
        return "The measurements could not be read, so nothing is taken back."
    doubtful = sorted({story.tally.rating(r).name for r in story.tally.ready if story.tally.rating(r).doubtful})
    return f"What {names(doubtful)} can serve is not measured, assumed or outdated, so nothing is taken back."


def _stopped(story: Story) -> str:
    """What was in the way, where anything was."""
    if not story.limited_by:
        return ""
    return " In the way: " + "; ".join(stop_phrase(stop) for stop in story.limited_by) + "."


def _ended(story: Story) -> str:
    if not story.ended:
        return ""
    are = "is" if len(story.ended) == 1 else "are"
    return f" {names([replica.name for replica in story.ended])} never became ready in time and {are} ended."


_SENTENCES: Final[Mapping[tuple[str, str], Callable[[Story], str]]] = {
    ("add", "below_min"): _below_min,
    ("add", "wake"): _wake,
    ("add", "over_capacity"): _over_capacity,
    ("add", "reclaim_fill"): _reclaim_fill,
    ("add", "evacuate"): _evacuate_add,
    ("remove", "evacuate"): _evacuate_remove,
    ("add", "measure"): _measure_add,
    ("remove", "measure"): _measure_remove,
    ("remove", "above_max"): _above_max,
    ("remove", "reclaimed"): _reclaimed,
    ("remove", "over_limit"): _over_limit,
    ("remove", "rest_under_threshold"): _rest_under,
    ("remove", "idle"): _idle,
    ("remove", "start_timeout"): _start_timeout,
    ("hold", "starting_covers"): _starting,
    ("hold", "rest_over_threshold"): _rest_over,
    ("hold", "survivor_over_threshold"): _survivor_over,
    ("hold", "at_min"): _at_min,
    ("hold", "cooldown"): _cooldown,
    ("hold", "draining"): _draining,
    ("hold", "idle_wait"): _idle_wait,
    ("hold", "metrics_unknown"): _unknown,
    ("hold", "unmeasured"): _unmeasured,
    ("hold", "at_max"): _need_unmet,
    ("hold", "no_room"): _need_unmet,
    ("hold", "at_limit"): _need_unmet,
    ("hold", "guarantee_reserved"): _need_unmet,
    ("hold", "awaiting_reclaim"): _need_unmet,
    ("hold", "not_active"): _need_unmet,
    ("hold", "policy_unavailable"): _need_unmet,
    ("hold", "room_unknown"): _need_unmet,
}
