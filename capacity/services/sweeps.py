"""Asking for a sweep of a profile, and stopping one."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from celery import current_app
from django.conf import settings
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import transaction
from kombu.exceptions import OperationalError

from quotas.models import User
from quotas.services import exclusive
from quotas.services.rows import LONGEST_REASON

from ..measuring import tokens
from ..measuring.keeper import end_parked
from ..measuring.taking import last_sentence, takes_last
from ..measuring.wish import Wish, run_of
from ..models import BenchRun, Profile
from .brake import COMMAND_LINE

TASK = "capacity.tasks.run_sweeps"


def bench_start(profile: Profile, wish: Wish, *, actor: User | None, reason: str, now: datetime) -> BenchRun:
    """Queues a sweep; the worker for sweeps carries it when those before it are over. Refuses a second one of a profile."""
    run = bench_prepare(profile, wish, actor=actor, reason=reason, now=now)
    if wish.token and not tokens.keep(run, wish.token):
        raise ValidationError({"token": "The token cannot be kept until the sweep begins: Redis is away."})
    try:
        with exclusive():
            write(run)
            transaction.on_commit(partial(wake_worker, settings.BENCH_QUEUE))
    except ValidationError:
        if wish.token:
            tokens.forget(run)
        raise
    return run


def bench_prepare(profile: Profile, wish: Wish, *, actor: User | None, reason: str, now: datetime) -> BenchRun:
    """The run as it would be written, checked; nothing is stored."""
    if not reason.strip():
        raise ValidationError({"reason": "Say why it is measured: the reason stays with the measurement."})
    run = run_of(profile, wish)
    run.actor = actor.get_username() if actor else COMMAND_LINE
    run.reason, run.created_at = reason.strip()[:LONGEST_REASON], now
    refuse_second(run)
    return run


def refuse_second(run: BenchRun) -> None:
    other = BenchRun.objects.open().filter(profile=run.profile).first()
    if other is not None:
        sentence = f"Sweep {other.pk} of {run.profile} is {other.state} already: wait for it, or stop it."
        raise ValidationError({NON_FIELD_ERRORS: sentence})


def write(run: BenchRun) -> None:
    """Under the lock of all edits: two that were asked for at once are one."""
    refuse_second(run)
    if takes_last(run, run.created_at):
        raise ValidationError({"take_last": last_sentence(run)})
    run.save(force_insert=True)


def bench_stop(run: BenchRun, *, actor: User | None, now: datetime) -> BenchRun:
    """Ends one that nobody carries at once; the worker of one under way stops within two seconds. Refuses one that is over."""
    who = actor.get_username() if actor else COMMAND_LINE
    asked, rows = {"stop_asked": True, "stopped_by": who}, BenchRun.objects.filter(pk=run.pk)
    said = f"It was stopped by {who} before it began."
    found = rows.filter(state=BenchRun.State.QUEUED).update(state=BenchRun.State.STOPPED, ended_at=now, message=said, **asked)
    if not (found or rows.open().update(**asked)):
        raise ValidationError({NON_FIELD_ERRORS: "It is over already: there is nothing to stop."})
    end_parked(run, BenchRun.State.STOPPED, said, now)
    if found and run.with_token:
        tokens.forget(run)
    run.refresh_from_db()
    return run


def wake_worker(queue: str) -> None:
    """Tells the worker that there is something to do. Where the broker is away, beat tells it again."""
    try:
        current_app.send_task(TASK, queue=queue, expires=settings.BENCH_WAKE_SECONDS, retry=False)
    except (OperationalError, OSError):
        return
