"""What a pass tells the sweeps that wait for a replica of their own: which one was started for it, or why none was."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from ..braking import Held
from ..models import Action, BenchRun, Replica
from ..snapshot import Built


def write(built: Built, held: Held, actions: Iterable[Action]) -> None:
    """In the pass's transaction, before anything is started. Where nobody waits nothing is asked."""
    waiting = {key: row for key, row in built.rows.profiles.items() if row.measure}
    if not waiting:
        return
    models = {row.id: row.name for row in built.rows.models.values()}
    for action in actions:
        if action.op == "start" and action.reason == "measure":
            give(waiting[models[action.model_id], action.profile_name].id, action.replica_name)
    why = {(row.model, row.profile): row.why for row in held.plan.waiting}
    why |= {(w.action.model, w.action.profile): w.why for w in held.withheld if w.action.reason == "measure"}
    for key, sentence in why.items():
        of_profile(waiting[key].id).update(message=sentence)


def give(profile_id: int, replica_name: str) -> None:
    """From now on the replica is the run's own, and nothing else is done with it."""
    replica = Replica.objects.get(name=replica_name)
    of_profile(profile_id).update(replica=replica, message=f"{replica_name} is starting for it.")


def of_profile(profile_id: int) -> QuerySet[BenchRun]:
    return BenchRun.objects.filter(profile_id=profile_id, state=BenchRun.State.WAITING, own_replica=True, replica__isnull=True)
