"""What needs a person, as sentences. Only rows with a fault are read, so that the number of queries stays the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.urls import NoReverseMatch, reverse

from .. import clock
from ..briefings.brake_state import amounts
from ..models import Decision, LanguageModel, Measurement, Profile, Replica, Sample
from .asks import MOST_OF_A_KIND, Item
from .asks_of_hosts import cordoned_hosts, unheard_hosts, units_out
from .brake_marks import Mark, since, subjects
from .demand import asked
from .words import SHORT, UNKNOWING, sentence, title

if TYPE_CHECKING:
    from .frame import Frame

# silent nodes and take-overs have items of their own
TAKE_OVERS = frozenset({"copied_database", "another_installation", "older_backup"})
TOLD_ELSEWHERE = TAKE_OVERS | {"node_silent", "node_lost"}
SLACK = timedelta(seconds=1)


def items(frame: Frame) -> list[Item]:
    """Causes before what follows from them: what hides the rest, what takes units away or withholds, what lacks capacity, what is
    doubted."""
    causes = (_late, _take_over, unheard_hosts, cordoned_hosts, _brakes, _views)
    follows = (_over_capacity, _could_not, _evidence, _problems)
    return [item for source in (*causes, *follows) for item in source(frame)]


def _late(frame: Frame) -> Iterator[Item]:
    for pool in frame.shown_pools:
        row = pool.last_pass
        if row is None or frame.now - row.at <= timedelta(seconds=frame.late_after_seconds):
            continue
        text = f"has had no pass for {clock.age(row.at, frame.now)}; what is shown is that old, and nothing is scaled meanwhile."
        yield Item(label="late", level="bad", subject=pool.name, text=text, url="/readyz", act="what is not ready →", code="late")


def _brakes(frame: Frame) -> Iterator[Item]:
    """Pulled: one item. Else one for each rule that withholds something, with the act that mends it."""
    for mark in frame.brakes:
        where = (reverse("pool_brake", args=[mark.pool]), "look and release →")
        url, act = where if frame.user.may_operate else (reverse("decisions"), "decisions →")
        if mark.is_on:
            text = _pulled(mark, frame)
            yield Item(label="brake on", level="bad", subject=mark.pool, text=text, url=url, act=act, code="manual")
            continue
        for rule, rows in mark.by_rule().items():
            whys = {row["why"] for row in rows}
            why = whys.pop() if len(whys) == 1 else sentence(rule)
            text = f"{amounts(rows)} withheld for {clock.age(since(rows), frame.now)}. {why}"
            yield Item(label=title(rule), level="warn", subject=subjects(rows), text=text, url=url, act=act, code=rule)


def _pulled(mark: Mark, frame: Frame) -> str:
    brake = mark.brake
    end = f"until {clock.short(brake.until, frame.now)} UTC" if brake.until else "until it is released"
    waits = f" {mark.amounts} withheld." if mark.rows else ""
    why = f", pulled by {brake.actor}: {brake.reason}" if frame.user.sees_everything else ""
    age = f" for {clock.age(brake.changed_at, frame.now)}" if brake.changed_at else ""
    return f"starts and stops nothing{age}, {end}{why.rstrip('.')}.{waits}"


def _take_over(frame: Frame) -> Iterator[Item]:
    """Why a pool is not acted on, for whoever may take it over; the others see the pill."""
    for pool in frame.waiting_pools if frame.user.may_operate else ():
        url = reverse("take_over", args=[pool.name])
        for problem in pool.last_pass.problems if pool.last_pass else ():
            code, name = str(problem.get("code")), str(problem.get("subject")).partition(":")[2]
            if code in TAKE_OVERS:
                text = str(problem.get("detail"))
                yield Item(label=title(code), level="bad", subject=name, text=text, url=url, act="take over →", code=code)


def _views(frame: Frame) -> Iterator[Item]:
    for view in frame.views:
        if view.error:
            age = f"the last good answer is {clock.age(view.read_at, frame.now)} old" if view.read_at else "they were never read"
            text = f"cannot be read ({view.error[:160]}); {age}."
            yield Item(
                label="unreadable",
                level="bad",
                subject=view.name,
                text=text,
                url="/readyz",
                act="what is not ready →",
                code="unreadable",
            )


def newest(frame: Frame, field: str) -> Q:
    """Rows that the newest pass of their pool wrote or confirmed."""
    path = {"seen_until": ("pool", "seen_until__gte"), "at": ("model__pool", "at__gte")}[field]
    condition = Q(pk__in=[])
    for pool in frame.shown_pools:
        if pool.last_pass:
            condition |= Q(**{path[0]: pool, path[1]: pool.last_pass.at - SLACK})
    return condition


def short_decisions(frame: Frame) -> list[Decision]:
    """What the newest passes could not do, the oldest first."""
    rows = Decision.objects.visible_to(frame.user).filter(newest(frame, "seen_until"), reason__in=SHORT | UNKNOWING)
    return frame.telling.rows(rows.select_related("model").order_by("at", "model__name")[:MOST_OF_A_KIND])


def _could_not(frame: Frame) -> Iterator[Item]:
    for row in frame.short_decisions:
        level = "unknown" if row.reason in UNKNOWING else "warn"
        text = f"{row.why or sentence(row.reason)}{units_out(row, frame)} For {clock.age(row.at, frame.now)}."
        yield Item(
            label=title(row.reason),
            level=level,
            subject=row.model.name,
            text=text,
            url=model_url(row.model.name),
            act="why →",
            code=row.reason,
        )


def _over_capacity(frame: Frame) -> Iterator[Item]:
    seen = LanguageModel.objects.visible_to(frame.user)
    rows = Sample.objects.filter(newest(frame, "at"), model__in=seen, demand_low__gt=F("capacity_ready"))
    for row in rows.select_related("model").order_by("model__name")[:MOST_OF_A_KIND]:
        text = f"has {asked(row)}."
        coming = f" {row.starting} starting." if row.starting else ""
        yield Item(
            label="over capacity",
            level="bad",
            subject=row.model.name,
            text=text + coming,
            url=model_url(row.model.name),
            act="the chart →",
            code="over_capacity",
        )


def profiles_in_use(frame: Frame) -> Any:
    """Profiles that replicas run on, each with the status of the measurement in use (None: there is none)."""
    used = Measurement.objects.filter(profile=OuterRef("pk")).best_first()
    running = Replica.objects.filter(profile=OuterRef("pk"), gone_at__isnull=True)
    rows = Profile.objects.visible_to(frame.user).filter(Exists(running), model__pool__in=frame.shown_pools)
    return rows.annotate(evidence=Subquery(used.values("status")[:1])).select_related("model")


def _evidence(frame: Frame) -> Iterator[Item]:
    words = {
        None: ("unmeasured", "runs without a measurement: it is never added for load, and none of its replicas is taken back."),
        "stale": ("outdated", "stands on an outdated measurement: it counts for adding, and removals wait."),
        "assumed": ("assumed", "stands on numbers that a person typed in: they count for adding, and removals wait."),
    }
    rows = profiles_in_use(frame).filter(Q(evidence__isnull=True) | ~Q(evidence="current"))
    for row in rows.order_by("model__name", "name")[:MOST_OF_A_KIND]:
        label, text = words[row.evidence]
        yield Item(
            label=label,
            level="warn",
            subject=f"{row.model.name} · {row.name}",
            text=text,
            url=reverse("measurements"),
            act="measurements →",
            place="measurements",
            code=label,
        )


def _problems(frame: Frame) -> Iterator[Item]:
    """What the plan and the observation named; of models only those that the user may see, the rest for operators."""
    told = [problem for row in frame.passes for problem in row.problems if isinstance(problem, dict)]
    names = {str(problem.get("subject", ""))[6:] for problem in told if str(problem.get("subject", "")).startswith("model:")}
    seen = set(LanguageModel.objects.visible_to(frame.user).filter(name__in=names).values_list("name", flat=True))
    for problem in told[:MOST_OF_A_KIND]:
        kind, _, name = str(problem.get("subject", "")).partition(":")
        if problem.get("code") in TOLD_ELSEWHERE or not (frame.user.sees_everything or (kind == "model" and name in seen)):
            continue
        url = subject_url(kind, name)
        code = str(problem.get("code"))
        text = str(problem.get("detail") or sentence(code)).removeprefix(f"{name}: ")
        yield Item(label=title(code), level="warn", subject=name, text=text, url=url, act="look →", code=code)


def subject_url(kind: str, name: str) -> str:
    """Where the subject of a problem is shown; a name that can stand in no address has the decisions."""
    try:
        return reverse(kind, args=[name]) if kind in {"model", "node", "replica"} else reverse("decisions")
    except NoReverseMatch:
        return reverse("decisions")


def model_url(name: str) -> str:
    return reverse("model", args=[name])
