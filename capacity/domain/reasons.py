"""The one table of words: every reason, problem, limit and notice, as pages, API, logs, metrics and docs name it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """`title` fits a table cell; `sentence` is what an operator would say on the phone; `outcomes` are those of a reason."""

    code: str
    title: str
    sentence: str
    outcomes: tuple[str, ...] = ()


def _table(words: Iterable[Word]) -> Mapping[str, Word]:
    return {word.code: word for word in words}


def _reason(code: str, outcomes: str, title: str, sentence: str) -> Word:
    return Word(code=code, title=title, sentence=sentence, outcomes=tuple(outcomes.split()))


REASONS: Final = _table(
    (
        _reason("below_min", "add", "Below its minimum", "Fewer replicas run than the minimum asks for."),
        _reason("wake", "add", "Woken", "Nothing runs, and somebody asked for the model."),
        _reason(
            "over_capacity",
            "add",
            "Over capacity",
            "More requests are in flight than the ready replicas were measured to serve.",
        ),
        _reason(
            "reclaim_fill",
            "add",
            "Filling what was given back",
            "Hardware was given back for this model and is being taken up.",
        ),
        _reason(
            "evacuate",
            "add remove",
            "Leaving a node",
            "A replica on a cordoned node or a retired profile is replaced, then drained.",
        ),
        _reason("above_max", "remove", "Above its maximum", "More replicas are held than the maximum allows."),
        _reason(
            "rest_under_threshold",
            "remove",
            "The rest is enough",
            "The replicas that stay would be under the threshold, so one is taken back.",
        ),
        _reason("idle", "remove", "Idle", "Nobody has asked for the model for long enough, so the last replica goes."),
        _reason("start_timeout", "remove", "Never became ready", "A replica took longer than a start may take and is ended."),
        _reason("reclaimed", "remove", "Given back", "Somebody else is owed the hardware and is waiting for it."),
        _reason(
            "over_limit",
            "remove",
            "Over a lowered limit",
            "A limit was lowered below what is used, so it is drained down to it.",
        ),
        _reason("steady", "hold", "Nothing to do", "Nothing runs and nothing is asked for."),
        _reason("starting_covers", "hold", "Starting replicas will do", "What is on its way is waited for."),
        _reason(
            "rest_over_threshold",
            "hold",
            "The rest would be too busy",
            "Without one replica the others would be at or over the threshold.",
        ),
        _reason(
            "survivor_over_threshold",
            "hold",
            "One replica would be too busy",
            "With its share of the load one of the others would be at or over the threshold.",
        ),
        _reason("at_min", "hold", "At its minimum", "No more replicas run than must stay."),
        _reason("at_max", "hold", "At its maximum", "More is needed, but the maximum is reached."),
        _reason(
            "cooldown",
            "hold",
            "Waiting after a change",
            "The last change, or the start of the recorded load, is too recent to take one back.",
        ),
        _reason("draining", "hold", "One is draining", "One replica is draining; the next is taken when it is gone."),
        _reason(
            "idle_wait",
            "hold",
            "Idle, not long enough",
            "There is no load, but the last request is too recent to let the last replica go.",
        ),
        _reason("metrics_unknown", "hold", "Load not known", "A load could not be read, so nothing is taken back."),
        _reason("unmeasured", "hold", "Not measured", "What a replica can serve was not measured well enough to decide this."),
        _reason("no_room", "hold", "No room", "More is needed, but no node has the room."),
        _reason(
            "at_limit",
            "hold",
            "At a quota limit",
            "More is needed, but a limit of the scope or of one above it is reached.",
        ),
        _reason("guarantee_reserved", "hold", "Kept for others", "More is needed, but what is free is owed to others."),
        _reason(
            "awaiting_reclaim",
            "hold",
            "Waiting for hardware to come back",
            "More is needed, and others are giving back the hardware for it.",
        ),
        _reason("not_active", "hold", "No active profile", "More is needed, but every profile for it takes no new replicas."),
        _reason("not_removable", "hold", "None may be taken", "One could go, but none of the replicas may be stopped from here."),
        _reason(
            "policy_unavailable",
            "hold",
            "Quotas or measurements not read",
            "More is needed, but quotas or measurements could not be read.",
        ),
        _reason(
            "inventory_unknown",
            "hold",
            "Replicas not known",
            "The list of running replicas could not be read, so everything holds.",
        ),
        _reason("room_unknown", "hold", "Nodes not known", "More is needed, but the nodes could not be read."),
        _reason(
            "bounds_conflict",
            "hold",
            "Bounds contradict",
            "The stored minimum is above the maximum; correct the model's bounds.",
        ),
        _reason("paused", "hold", "Paused", "The model is paused and left alone."),
        _reason(
            "lease_lost",
            "hold",
            "Another pass took over",
            "Another worker took over this pool during the pass; nothing was done.",
        ),
    )
)

PROBLEMS: Final = _table(
    (
        Word(
            code="cycle",
            title="Scopes in a circle",
            sentence="Scopes are their own ancestors; limits bind, guarantees do not.",
        ),
        Word(
            code="unknown_parent",
            title="Parent does not exist",
            sentence="A scope names a parent that does not exist; that parent is left out.",
        ),
        Word(
            code="assumed_funding",
            title="Funding parent assumed",
            sentence="A scope has several parents and none is marked as the one that funds it; the first is taken.",
        ),
        Word(
            code="limit_below_guarantee",
            title="Limit below guarantee",
            sentence="A quota row has a limit below its own guarantee; the limit holds.",
        ),
        Word(code="cut", title="Guarantee cut by a limit", sentence="A limit above leaves less than the scope is guaranteed."),
        Word(code="scaled", title="Guarantee scaled down", sentence="More is guaranteed than there is; each got its share."),
        Word(
            code="guarantee_not_leaf",
            title="Guarantee on no hardware class",
            sentence="A guarantee names a class that no node offers and no profile takes; it is ignored.",
        ),
        Word(
            code="no_owner",
            title="No scope",
            sentence="A model belongs to no scope: it is counted against nobody and entitled to nothing.",
        ),
        Word(
            code="unknown_node",
            title="Node not known",
            sentence="A replica's nodes are not all listed, or are not as many as its profile takes; it still counts for quotas.",
        ),
        Word(
            code="hotspot",
            title="One hot replica",
            sentence="One replica has more than it was measured to serve while the total fits: look at the routing.",
        ),
        Word(
            code="disagree",
            title="Gateway and engine disagree",
            sentence="Gateway and engine count differently; the larger counts, and after a whole window nothing is taken back.",
        ),
        Word(
            code="unknown_push",
            title="Push for what is not here",
            sentence="A gateway pushes for replicas or models that the pool has never had; that counts for nobody.",
        ),
        Word(
            code="other_writer",
            title="Somebody else scales it",
            sentence="Another controller or a person changed the number of replicas after us; the model only gets advice now.",
        ),
        Word(
            code="node_silent",
            title="Node silent",
            sentence="A node has not reported; it offers no room and its replicas stay.",
        ),
        Word(
            code="node_lost",
            title="Node lost",
            sentence="A node has been silent for too long; its replicas are taken to be gone.",
        ),
        Word(
            code="engine_silent",
            title="Registered engine silent",
            sentence="A registered engine does not answer: it counts as unready until it does or is forgotten.",
        ),
        Word(
            code="copied_database",
            title="Copy of a database",
            sentence="Another installation wrote this pool's database; models are only advised until it is taken over.",
        ),
        Word(
            code="another_installation",
            title="Obeys another installation",
            sentence="Hosts of the pool obey another installation; models are only advised until it is taken over.",
        ),
        Word(
            code="older_backup",
            title="Older backup",
            sentence="Hosts have seen a later state than the database; models are only advised until it is taken over.",
        ),
        Word(
            code="removals_rest",
            title="Removals rest",
            sentence="After a removal the model missed its SLO: the replica was taken back, and nothing is taken back for a day.",
        ),
        Word(code="invalid_row", title="Stored row not valid", sentence="A stored row breaks a rule and was left out."),
        Word(
            code="invalid_report",
            title="Report not believable",
            sentence="A host reports what cannot be; it is counted as none.",
        ),
        Word(
            code="reported_twice",
            title="One replica, two hosts",
            sentence="Two hosts report the same replica; it counts once, and what it holds on the other is not offered.",
        ),
        Word(
            code="shared_machine",
            title="Machine offered twice",
            sentence="Several node workers on one machine offer its cores or devices; they count once.",
        ),
        Word(
            code="unknown_product",
            title="Product not known",
            sentence="A host has a device that the table of products does not have; its class is made of its name.",
        ),
    )
)

LIMITS: Final = _table(
    (
        Word(code="limit", title="Quota limit", sentence="A quota limit of the scope or of one above it is reached."),
        Word(code="room", title="Room", sentence="No node has enough free units of the class."),
        Word(code="max_replicas", title="Maximum", sentence="The model's maximum is reached."),
        Word(code="guarantee_reserved", title="Kept for others", sentence="What is free is owed to another scope."),
        Word(code="step", title="Step", sentence="No more are added in one pass."),
        Word(code="unmeasured", title="Not measured", sentence="The profile was not measured, so it is not started for load."),
        Word(
            code="unable",
            title="Cannot meet the target",
            sentence="The profile was measured to miss the target even without load.",
        ),
        Word(code="not_active", title="Takes no new ones", sentence="The profile takes no new replicas."),
        Word(code="backoff", title="Backing off", sentence="Starts of the profile failed on a node; it rests there for a while."),
        Word(code="unknown", title="Not read", sentence="Something that decides this could not be read."),
        Word(code="brake", title="The brake", sentence="The brake withholds what was decided until a person releases it."),
    )
)

BRAKES: Final = _table(
    (
        Word(code="manual", title="Pulled by a person", sentence="A person withholds everything that the pool would do."),
        Word(
            code="unready_together",
            title="Unready together",
            sentence="Half of a model's replicas turned unready together, so none is stopped for it.",
        ),
        Word(
            code="stops",
            title="Too many stops",
            sentence="More replicas would be stopped in a short time than pass without a person.",
        ),
        Word(
            code="starts",
            title="Too many starts",
            sentence="More replicas would be started in a short time than pass without a person.",
        ),
    )
)

# what Now lists beside reasons and problems
NOTICES: Final = _table(
    (
        Word(code="late", title="Late", sentence="No pass has ended for two intervals; nothing is scaled meanwhile."),
        Word(
            code="unreadable",
            title="Unreadable",
            sentence="Quotas or measurements cannot be read now; the last good answer stays in use.",
        ),
        Word(
            code="outdated",
            title="Outdated",
            sentence="Replicas run on an outdated measurement: it counts for adding, and removals wait.",
        ),
        Word(
            code="assumed",
            title="Assumed",
            sentence="Replicas run on numbers that a person typed in: they count for adding, and removals wait.",
        ),
    )
)
