"""What stopped more, what the brake goes by, and what Now lists beside reasons and problems."""

from __future__ import annotations

from typing import Final

from capacity.domain.reasons.word import Word, table

LIMITS: Final = table(
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

BRAKES: Final = table(
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
NOTICES: Final = table(
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
