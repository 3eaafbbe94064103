"""A limit that was lowered below what is held is reached by draining, once its grace is over."""

from __future__ import annotations

from capacity.domain.clock import reached
from capacity.domain.giving.lenders import Lender, Lenders, Shortage
from capacity.domain.giving.outlook import Outlook
from capacity.domain.types import Replica, Snapshot
from quotas.domain.ledger import Ledger
from quotas.domain.types import Quota, covers

Given = dict[str, tuple[Replica, Quota]]
"""Model → the replica that goes, and the row whose limit it goes for."""


def down_to_limits(snapshot: Snapshot, ledger: Ledger, outlook: Outlook, lenders: Lenders) -> Given:
    """One victim a model at most, the next when it is gone; models at or below their entitlement only when none above can."""
    given: Given = {}
    for row in ledger.passed():
        if reached(row.lowered_at, snapshot.at, snapshot.settings.shrink_grace_seconds):
            _drain(row, ledger, outlook, lenders, given)
    return given


def _drain(row: Quota, ledger: Ledger, outlook: Outlook, lenders: Lenders, given: Given) -> None:
    taken: list[tuple[Lender, Replica]] = []

    def helps(lender: Lender, replica: Replica) -> bool:
        if lender.name in given or lender.gone or lender.tally.draining:
            return False
        own = lender.tally.rating(replica).profile
        below = row.scope in ledger.policy.tenancy.ancestors(ledger.scope_of(lender.name) or "")
        return below and (covers(row.target, own.resource) if row.model is None else row.model == lender.name)

    shortage = Shortage(key=(row.scope, row.target), helps=helps)
    while row.limit is not None and outlook.used(row) > row.limit:
        found = lenders.first(shortage) or (None if taken else lenders.first(shortage, entitled=True))
        if found is None:
            break
        lender, replica = found
        outlook.end(lender.tally, replica)
        lender.take(replica)
        taken.append(found)
    for lender, replica in sorted(taken, key=lambda one: -one[0].tally.rating(one[1]).units):
        outlook.keep(lender.tally, replica)
        if row.limit is not None and outlook.used(row) <= row.limit:
            lender.keep(replica)
            continue
        outlook.end(lender.tally, replica)
        given[lender.name] = (replica, row)
