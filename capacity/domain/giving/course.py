"""After all that acts was granted: who gives back for whom, and what goes down to a lowered limit."""

from __future__ import annotations

from collections.abc import Sequence

from capacity.domain.cases import Case
from capacity.domain.giving.lenders import Lender, Lenders
from capacity.domain.giving.outlook import Outlook
from capacity.domain.giving.over_limit import down_to_limits
from capacity.domain.giving.reclaim import Reclaim
from capacity.domain.granting import Granter
from capacity.domain.needs import Need
from capacity.domain.offer import room_of
from capacity.domain.types import Snapshot
from quotas.domain.ledger import Ledger


def give_back(snapshot: Snapshot, cases: Sequence[Case], granter: Granter, acting: Sequence[Need]) -> None:
    """Marks in each case what it gives. Nothing is taken while quotas, measurements or nodes are not known."""
    ledger = granter.ledger
    if ledger is None or granter.room is None:
        return
    asking = [need for need in acting if need.open and not need.evacuate] if snapshot.settings.reclaim else []
    if not (asking and ledger.anyone_short()) and not ledger.passed():
        return
    outlook = _outlook(snapshot, cases, granter, ledger)
    may_give = [lender for case in cases if (lender := _lender(case)) is not None]
    lenders = Lenders(may_give, ledger, outlook, snapshot.at, snapshot.settings.min_run_seconds)
    search = Reclaim(snapshot, ledger, outlook, lenders)
    search.search(asking)
    over = down_to_limits(snapshot, ledger, outlook, lenders)
    by_name = {case.model.name: case for case in cases}
    for back in search.returns:
        by_name[back.model].returned.append(back)
    for model, given in over.items():
        by_name[model].over = given


def _outlook(snapshot: Snapshot, cases: Sequence[Case], granter: Granter, ledger: Ledger) -> Outlook:
    """The room without all that drains and with all that was granted."""
    staying = []
    for case in cases:
        gone = {replica.name for replica in case.leaving()}
        stays = [replica for replica in case.replicas if replica.state != "draining" and replica.name not in gone]
        staying.append((case.tally, stays))
    room = room_of(snapshot, staying)
    by_name = {case.model.name: case for case in cases}
    taken_back = {action.replica for action in granter.granted if action.op == "undrain"}
    for case in cases:
        for replica in case.tally.draining:
            if replica.name in taken_back:
                room.take(case.tally.rating(replica).profile, replica.nodes)
    for action in granter.granted:
        if action.op == "start":
            room.take(by_name[action.model].tally.ratings[action.profile].profile, action.nodes)
    return Outlook(room, ledger)


def _lender(case: Case) -> Lender | None:
    """Only `auto` models give, and none with a start that is stuck or of which something stuck is ended now."""
    stuck = any(replica.state == "starting" for replica in case.tally.stuck)
    if case.model.mode != "auto" or case.left_alone or stuck or case.ended():
        return None
    return Lender(found=case.found, leaving=case.own_removal(), given=case.given)
