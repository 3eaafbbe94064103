"""Why a decision adds, removes or holds: a fixed list."""

from __future__ import annotations

from typing import Final

from capacity.domain.reasons.word import reason, table

REASONS: Final = table(
    (
        reason("below_min", "add", "Below its minimum", "Fewer replicas run than the minimum asks for."),
        reason("wake", "add", "Woken", "Nothing runs, and somebody asked for the model."),
        reason(
            "over_capacity",
            "add",
            "Over capacity",
            "More requests are in flight than the ready replicas were measured to serve.",
        ),
        reason(
            "reclaim_fill",
            "add",
            "Filling what was given back",
            "Hardware was given back for this model and is being taken up.",
        ),
        reason(
            "evacuate",
            "add remove",
            "Being replaced",
            "A replica on a cordoned node or a retired profile, or one that is outdated, is replaced, then drained.",
        ),
        reason(
            "measure",
            "add remove",
            "For a sweep",
            "A person asked for a sweep: a replica is started for it, and drained after it where its model is not auto.",
        ),
        reason("above_max", "remove", "Above its maximum", "More replicas are held than the maximum allows."),
        reason(
            "rest_under_threshold",
            "remove",
            "The rest is enough",
            "The replicas that stay would be under the threshold, so one is taken back.",
        ),
        reason("idle", "remove", "Idle", "Nobody has asked for the model for long enough, so the last replica goes."),
        reason("start_timeout", "remove", "Never became ready", "A replica took longer than a start may take and is ended."),
        reason("reclaimed", "remove", "Given back", "Somebody else is owed the hardware and is waiting for it."),
        reason(
            "over_limit",
            "remove",
            "Over a lowered limit",
            "A limit was lowered below what is used, so it is drained down to it.",
        ),
        reason("steady", "hold", "Nothing to do", "Nothing runs and nothing is asked for."),
        reason("starting_covers", "hold", "Starting replicas will do", "What is on its way is waited for."),
        reason(
            "rest_over_threshold",
            "hold",
            "The rest would be too busy",
            "Without one replica the others would be at or over the threshold.",
        ),
        reason(
            "survivor_over_threshold",
            "hold",
            "One replica would be too busy",
            "With its share of the load one of the others would be at or over the threshold.",
        ),
        reason("at_min", "hold", "At its minimum", "No more replicas run than must stay."),
        reason("at_max", "hold", "At its maximum", "More is needed, but the maximum is reached."),
        reason(
            "cooldown",
            "hold",
            "Waiting after a change",
            "The last change, or the start of the recorded load, is too recent to take one back.",
        ),
        reason("draining", "hold", "One is draining", "One replica is draining; the next is taken when it is gone."),
        reason(
            "idle_wait",
            "hold",
            "Idle, not long enough",
            "There is no load, but the last request is too recent to let the last replica go.",
        ),
        reason("metrics_unknown", "hold", "Load not known", "A load could not be read, so nothing is taken back."),
        reason("unmeasured", "hold", "Not measured", "What a replica can serve was not measured well enough to decide this."),
        reason("no_room", "hold", "No room", "More is needed, but no node has the room."),
        reason(
            "at_limit",
            "hold",
            "At a quota limit",
            "More is needed, but a limit of the scope or of one above it is reached.",
        ),
        reason("guarantee_reserved", "hold", "Kept for others", "More is needed, but what is free is owed to others."),
        reason(
            "awaiting_reclaim",
            "hold",
            "Waiting for hardware to come back",
            "More is needed, and others are giving back the hardware for it.",
        ),
        reason("not_active", "hold", "No active profile", "More is needed, but every profile for it takes no new replicas."),
        reason("not_removable", "hold", "None may be taken", "One could go, but none of the replicas may be stopped from here."),
        reason(
            "policy_unavailable",
            "hold",
            "Quotas or measurements not read",
            "More is needed, but quotas or measurements could not be read.",
        ),
        reason(
            "inventory_unknown",
            "hold",
            "Replicas not known",
            "The list of running replicas could not be read, so everything holds.",
        ),
        reason("room_unknown", "hold", "Nodes not known", "More is needed, but the nodes could not be read."),
        reason(
            "bounds_conflict",
            "hold",
            "Bounds contradict",
            "The stored minimum is above the maximum; correct the model's bounds.",
        ),
        reason("paused", "hold", "Paused", "The model is paused and left alone."),
        reason(
            "lease_lost",
            "hold",
            "Another pass took over",
            "Another worker took over this pool during the pass; nothing was done.",
        ),
    )
)
