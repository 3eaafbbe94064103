"""What people do to a pool's brake: pull it, and release what it withholds. With who, why and history."""

from __future__ import annotations

from datetime import datetime

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from quotas.models import Pool, User
from quotas.services import Conflict, exclusive, save

from .. import brake_rows
from ..briefings import brake_state
from ..domain.brake import release_of
from ..models import Brake

COMMAND_LINE = "the command line"


def brake_pull(
    pool: Pool, *, until: datetime | None, actor: User | None, reason: str, now: datetime, version: str | None = None
) -> Brake:
    """From the next pass on nothing of the pool is started or stopped, until `until` (None: until it is released). One that is
    on takes the new time and reason only for its `version` (`brake_state`): `Conflict` names it where that is not the one that
    was seen, and it keeps another's end and reason."""
    refuse_without(reason)
    if until is not None and until <= now:
        raise ValidationError({"until": f"{until:%Y-%m-%d %H:%M:%S} UTC has passed: name a time to come."})
    with exclusive():
        brake = locked(pool)
        if brake_state.is_pulled(brake, now) and version != brake_state.version(brake):
            raise Conflict({NON_FIELD_ERRORS: stands(pool, brake)})
        brake.is_on, brake.until = True, until
        write(brake, actor, reason, now)
    return brake


def brake_release(pool: Pool, *, version: str, actor: User | None, reason: str, now: datetime) -> Brake:
    """Takes the brake off and lets through exactly what is withheld, for one window. `version`: of the list that was seen
    (`brake_state`); `Conflict` where it is another by now, and nothing is released."""
    refuse_without(reason)
    with exclusive():
        brake = locked(pool)
        if version != brake_state.version(brake):
            raise Conflict({NON_FIELD_ERRORS: "What is withheld has changed since you looked. Nothing was released; look again."})
        if not (brake.is_on or brake.withheld):
            raise ValidationError({NON_FIELD_ERRORS: f"The brake of {pool} is off and withholds nothing."})
        released = release_of(brake_rows.withheld(brake), now + brake_rows.window(pool.settings))
        brake.is_on, brake.until = False, None
        write(brake, actor, reason, now)
        Brake.objects.filter(pk=brake.pk).update(released=brake_rows.release_row(released))
    return brake


def stands(pool: Pool, brake: Brake) -> str:
    end = f"until {brake.until:%Y-%m-%d %H:%M:%S} UTC" if brake.until else "until it is released"
    return (
        f"The brake of {pool} is on already, {end}, pulled by {brake.actor}: {brake.reason.rstrip('.')}. Look at it before you "
        "give it another end or reason. Nothing was changed."
    )


def refuse_without(reason: str) -> None:
    if not reason.strip():
        raise ValidationError({"reason": "Say why: it is kept in the history."})


def locked(pool: Pool) -> Brake:
    """Against a pass that writes what it withholds at the same moment."""
    return Brake.objects.select_for_update().get(pool=pool)


def write(brake: Brake, actor: User | None, reason: str, now: datetime) -> None:
    brake.reason, brake.changed_at = reason, now
    brake.actor = actor.get_username() if actor else COMMAND_LINE
    save(brake, actor=actor, reason=reason)
