"""One writer a pool: a compare-and-set on the pool's one row. Exactly one row changed, or somebody else holds it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from .models import Lease

LEASE_SECONDS = 30


def take(lease: Lease, holder: str, now: datetime, seconds: int = LEASE_SECONDS) -> int | None:
    """The new generation when the lease was free or over, None when another holds it or was quicker.

    `lease` is the row as the caller read it: its generation is what must still stand. One that ends later than any clock near
    ours would have written it is over: ours was set back, and a killed holder would block the pool until it has caught up.
    """
    if lease.holder and now < lease.until <= now + 2 * timedelta(seconds=seconds):
        return None
    generation = lease.generation + 1
    taken = Lease.objects.filter(pk=lease.pk, generation=lease.generation).update(
        holder=holder, until=now + timedelta(seconds=seconds), generation=generation
    )
    return generation if taken == 1 else None


def still_mine(lease_id: int, mine: str, generation: int, **fields: Any) -> bool:
    """True, and `fields` are written to the row, while this generation of `mine` stands. Called inside the recording
    transaction."""
    return Lease.objects.filter(pk=lease_id, holder=mine, generation=generation).update(**fields) == 1


def release(lease_id: int, holder: str, generation: int) -> None:
    """Lets the next pass begin at once; nothing where the lease has moved on."""
    Lease.objects.filter(pk=lease_id, holder=holder, generation=generation).update(holder="")
