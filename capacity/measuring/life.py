"""The life of a run: claimed once, its replica found and emptied, swept, judged, stored, and given back whatever happens."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db.models import Q, QuerySet

from ..bench.asked import Asked
from ..bench.levels import parse_levels
from ..fingerprints import run_print
from ..fleet_scrape import allowed_networks
from ..models import BenchRun, Replica
from ..querysets import HEARD
from .keeper import Keeper, Lost, Means, Over, end, end_parked
from .result import runs, store
from .taking import last_sentence, takes_last
from .wish import slo_of

log = structlog.get_logger(__name__)

State = BenchRun.State
NONE_TO_TAKE: Final = "No replica that runs what the profile is now is ready: there is none to take."
MOST_READING: Final = timedelta(seconds=15)
MOST_WAIT: Final = timedelta(hours=1)
"""So long a run waits for room."""
WAITS: Final = "Waits for the next pass to start a replica for it."
SETTLE: Final = timedelta(seconds=2)
"""A gateway asks for endpoints each second: what is counted before that may be followed by more."""


def claim(run: BenchRun, now: datetime) -> bool:
    """Whether the run is this worker's from here on. A second delivery of one task finds it taken."""
    rows = BenchRun.objects.filter(pk=run.pk, stop_asked=False)
    claimed = bool(
        rows.filter(state=State.QUEUED).update(state=first_state(run), started_at=now, heartbeat_at=now, message="")
        or rows.parked().update(parked=False, heartbeat_at=now, message="")
    )
    read_back(run)
    return claimed


def read_back(run: BenchRun) -> None:
    """As the row is now. It goes with its profile and its model, which somebody may have removed meanwhile."""
    try:
        run.refresh_from_db()
    except BenchRun.DoesNotExist:
        run.state, run.message = State.FAILED, "Its profile was removed while it ran: nothing is stored."


def first_state(run: BenchRun) -> str:
    if run.endpoint:
        return State.TESTING
    return State.WAITING if run.own_replica else State.EMPTYING


def carry(run: BenchRun, means: Means) -> BenchRun:
    """A claimed run to its end; whatever is raised on the way ends it too."""
    keeper = Keeper(run, means)
    try:
        _carry(keeper)
    except Over as over:
        end(run, over.state, over.why, means.now())
    except Lost:
        log.warning("sweep_lost", run=run.pk)
    except (KeyboardInterrupt, SystemExit):
        end(run, State.STOPPED, "It was interrupted.", means.now())
        raise
    except Exception as error:
        log.exception("sweep_broke", run=run.pk)
        end(run, State.FAILED, f"It broke off: {type(error).__name__}. The log of its worker says more.", means.now())
    read_back(run)
    return run


def _carry(keeper: Keeper) -> None:
    endpoint = keeper.run.endpoint or _replica(keeper).url
    keeper.beat(state=State.TESTING, message="")
    keeper.refuse_where_stopped()
    asked, was = asked_of(keeper.run, endpoint, _token(keeper)), runs(keeper.run)
    keeper.means.say(f"Sweeps {keeper.run.profile} at {keeper.run.replica or endpoint}.")
    swept = keeper.means.sweep(asked, progress=keeper.progress, should_stop=keeper.should_stop)
    if keeper.is_lost:
        raise Lost
    _read_anew(keeper)
    if swept.ended != "complete":
        why = "Its worker was ended." if swept.ended == "stopped" and keeper.means.ends() else swept.why
        raise Over(State.STOPPED if swept.ended == "stopped" else State.FAILED, why)
    keeper.beat()
    measurement, why = store(keeper.run, asked.slo, swept, was, keeper.means.now())
    fields: dict[str, Any] = {"measurement": measurement} if measurement else {}
    end(keeper.run, State.DONE, why, keeper.means.now(), **fields)


def _read_anew(keeper: Keeper) -> None:
    """Waits until the replica was read idle after the sweep: what the next pass knows of it must not be the sweep's load."""
    begun = keeper.means.now()
    while keeper.run.replica and not keeper.means.ends() and keeper.means.now() - begun <= MOST_READING:
        load = keeper.means.load(keeper.run)
        if load is not None and load[0] == 0 and load[1] > begun:
            return
        keeper.means.pause(1.0)
        keeper.beat()


def _token(keeper: Keeper) -> str | None:
    if not keeper.run.with_token:
        return None
    token = keeper.means.token(keeper.run)
    if token is None:
        raise Over(
            State.FAILED, "Its bearer token is not kept any more (a day at most, and only while Redis is there): ask anew."
        )
    return token


def asked_of(run: BenchRun, endpoint: str, token: str | None = None) -> Asked:
    slo = slo_of(run)
    if slo is None:
        raise Over(State.FAILED, "Its SLO was taken away: there is nothing to measure against.")
    return Asked(
        endpoint=endpoint,
        model=run.profile.model.name,
        slo=slo,
        levels=parse_levels(run.levels),
        api=run.api,  # type: ignore[arg-type]
        seconds=run.seconds,
        input_tokens=run.input_tokens,
        output_tokens=run.output_tokens,
        same_prompt=run.same_prompt,
        served_name=run.served_name,
        token=token,
        allowed_networks=allowed_networks(),
    )


def _replica(keeper: Keeper) -> Replica:
    return _own(keeper) if keeper.run.own_replica else _taken(keeper)


# --- one of its own
def _own(keeper: Keeper) -> Replica:
    begun, run, said = keeper.means.now(), keeper.run, ""
    if run.replica is None:
        run = keeper.beat(message=WAITS)
    while run.replica is None or not _is_ready(run.replica):
        refuse_hopeless(run, begun, keeper.means.now())
        if run.message != said:
            said = run.message
            keeper.means.say(said)
        run = keeper.wait()
    return run.replica


def _is_ready(replica: Replica) -> bool:
    return replica.state == Replica.State.READY and bool(replica.url) and replica.gone_at is None


def refuse_hopeless(run: BenchRun, begun: datetime, now: datetime) -> None:
    """`Over` where a run that waits for a replica of its own since `begun` will get none, or the one that it got is none."""
    if run.replica is None and now - begun > MOST_WAIT:
        raise Over(State.FAILED, f"No replica was started for it in an hour. {run.message}")
    _refuse_dead(run, now)


def _refuse_dead(run: BenchRun, now: datetime) -> None:
    replica, profile = run.replica, run.profile
    if replica is None:
        return
    if replica.gone_at or replica.state == Replica.State.DRAINING:
        raise Over(State.FAILED, f"{replica.name}, started for it, ended before it was ready. {replica.message}".strip())
    own = profile.start_timeout_seconds
    seconds = profile.model.pool.settings.start_timeout_seconds if own is None else own
    if now - replica.created_at > timedelta(seconds=seconds):
        raise Over(State.FAILED, f"{replica.name}, started for it, was not ready within {seconds} s.")


# --- one that runs
def _taken(keeper: Keeper) -> Replica:
    """Takes the least busy ready one, and waits until it has finished what it serves."""
    replica = to_take(keeper.run, keeper.means)
    if replica is None:
        raise Over(State.FAILED, NONE_TO_TAKE)
    if takes_last(keeper.run, keeper.means.now()):
        raise Over(State.FAILED, last_sentence(keeper.run))
    seconds, begun = empty_seconds(keeper.run), keeper.means.now()
    run = keeper.beat(replica=replica, message=f"{replica.name} finishes what it serves, for at most {seconds} s.")
    keeper.means.say(run.message)
    while (load := keeper.means.load(run)) is None or load[0] > 0 or load[1] < begun + SETTLE:
        if keeper.means.now() - begun > timedelta(seconds=seconds):
            still = "its load is not known" if load is None else f"it still serves {load[0]}"
            raise Over(State.FAILED, f"{replica.name} was not empty after {seconds} s: {still}. Nothing was measured.")
        run = keeper.wait()
        if run.replica is None or not _is_ready(run.replica):
            raise Over(State.FAILED, f"{replica.name} is no longer ready.")
    return replica


def takeable(run: BenchRun) -> QuerySet[Replica]:
    """Ready ones that run what the profile is now, or nobody knows what: another's measurement would be outdated at once."""
    of_now = Q(fingerprint__in=("", run_print(run.profile, run.profile.model.name)))
    return Replica.objects.filter(of_now, profile=run.profile, state=Replica.State.READY, gone_at=None, intent="").exclude(url="")


def to_take(run: BenchRun, means: Means) -> Replica | None:
    """The least busy of those, the ones of unknown load last."""
    loads = {row: means.load(BenchRun(profile=run.profile, replica=row)) for row in takeable(run).order_by("name")}
    return min(loads, key=lambda row: (loads[row] is None, (loads[row] or (0,))[0], row.name), default=None)


def empty_seconds(run: BenchRun) -> int:
    """How long it may take to finish: as long as a drain of the model may."""
    model = run.profile.model
    own = model.drain_timeout_seconds
    return model.pool.settings.drain_timeout_seconds if own is None else own


# --- those that nobody carries any more
def end_unheard(now: datetime) -> int:
    """Fails the runs whose worker is not heard any more; their replicas are free again already. How many there were."""
    silent = Q(heartbeat_at__lte=now - HEARD) | Q(heartbeat_at=None)
    runs = BenchRun.objects.open().exclude(state=State.QUEUED).filter(silent).select_related("profile")
    return sum(end(run, State.FAILED, _unheard(run), now) for run in runs)


def _unheard(run: BenchRun) -> str:
    when = f"{run.heartbeat_at:%H:%M:%S} UTC" if run.heartbeat_at else "never"
    return f"Its worker is gone (last heard: {when}): nothing is stored, and its replica is given back."


def next_due() -> BenchRun | None:
    """One whose own replica is ready, since that one serves nobody meanwhile; else the one that has waited longest."""
    rows = BenchRun.objects.filter(stop_asked=False).order_by("created_at", "pk")
    rows = rows.select_related("profile__model__pool__settings", "slo")
    ready = rows.parked().filter(replica__state=Replica.State.READY, replica__gone_at=None).exclude(replica__url="")
    return ready.first() or rows.filter(state=State.QUEUED).first()


# --- those that wait for a replica of their own, and hold no worker meanwhile
def park(run: BenchRun, now: datetime) -> bool:
    """Whether a queued run waits from here on while others are carried. One that needs no replica of its own never does."""
    queued = BenchRun.objects.filter(pk=run.pk, state=State.QUEUED, stop_asked=False, own_replica=True)
    return bool(queued.update(state=State.WAITING, parked=True, started_at=now, heartbeat_at=now, message=WAITS))


def keep_parked(now: datetime) -> None:
    """Their heartbeat, while nobody carries them; those that have waited in vain are ended."""
    for run in BenchRun.objects.parked().select_related("replica", "profile__model__pool__settings"):
        try:
            refuse_hopeless(run, run.started_at or now, now)
        except Over as over:
            end_parked(run, over.state, over.why, now)
        else:
            BenchRun.objects.filter(pk=run.pk).parked().update(heartbeat_at=now)
