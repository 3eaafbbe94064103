"""Pulls a pool's brake, shows it, and releases what it withholds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from capacity import clock, services
from capacity.briefings import brake_state
from capacity.briefings.brake_state import BrakeState
from capacity.domain.phrases import number
from quotas.command import OperatorCommand, needed, wrong_call
from quotas.forms import sentences
from quotas.models import Pool

from .snapshot import only_pool


class Command(OperatorCommand):
    help = (
        "Withholds everything that a pool would start or stop (--reason), shows what is withheld (--show), lets it through "
        "(--release). A release shows first what it lets through, and asks for the version of what was shown."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pool", help="The pool's name; needed where there are several.")
        parser.add_argument("--until", default="", help="Off by itself then: 30m, 2h, or an instant such as 2026-11-30T14:00Z.")
        parser.add_argument("--reason", default="", help="Why; kept in the history.")
        parser.add_argument("--release", action="store_true", help="Take it off and let through what it withholds.")
        parser.add_argument(
            "--seen",
            default="",
            metavar="VERSION",
            help="The version that you saw; needed to change or release one that is on.",
        )
        parser.add_argument("--show", action="store_true", help="Only say how it stands.")
        parser.add_argument("--json", action="store_true", dest="as_json", help="How it stands, as the API gives it.")

    def handle(self, *args: Any, **options: Any) -> None:
        now = datetime.now(UTC)
        pool = named(options["pool"] or only_pool())
        looks = is_look(options)
        try:
            if not looks:
                self.act(pool, options, now)
        except ValueError as error:
            raise wrong_call(str(error)) from None
        except ValidationError as error:
            raise CommandError(" ".join(sentences(error))) from error
        pool = named(pool.name)
        found = brake_state.state(pool, now)
        if options["as_json"]:
            self.stdout.write(json.dumps(brake_state.document(found), ensure_ascii=False))
        else:
            self.stdout.write("\n".join(lines(found, pool.lease.last_pass_at, now)))
        if looks and options["release"]:
            raise CommandError(how_to_release(found))

    def act(self, pool: Pool, options: dict[str, Any], now: datetime) -> None:
        reason, version = needed(options["reason"]), options["seen"]
        if options["release"]:
            services.brake_release(pool, version=version, actor=None, reason=reason, now=now)
            return
        until = brake_state.parse_until(options["until"], now)
        try:
            services.brake_pull(pool, until=until, actor=None, reason=reason, now=now, version=version)
        except services.Conflict as error:
            now_seen = brake_state.version(named(pool.name).brake)
            raise CommandError(f"{' '.join(sentences(error))} To change it, add: --seen {now_seen}") from error


def is_look(options: dict[str, Any]) -> bool:
    """Whether nothing is to be changed: --show, and a release of a list that was not seen."""
    if options["release"] and options["show"]:
        raise wrong_call("Give --release or --show, not both.")
    if options["release"] and options["until"]:
        raise wrong_call("A release has no end of its own: it holds for one window. Leave --until out.")
    return bool(options["show"] or (options["release"] and not options["seen"]))


def named(name: str) -> Pool:
    found = Pool.objects.select_related("settings", "brake", "lease").filter(name=name).first()
    if found is None:
        raise CommandError(f"There is no pool “{name}”.")
    return found


def lines(found: BrakeState, last_pass_at: datetime | None, now: datetime) -> Iterator[str]:
    yield head(found)
    count = found.counted
    stops, starts = number(count.stops, "stop"), number(count.starts, "start")
    yield (
        f"In the last {clock.duration(found.window_seconds)}: {stops} of {count.stops_allowed} that pass, {starts} of at least "
        f"{count.starts_allowed}."
    )
    if not found.withheld:
        yield "Nothing is withheld."
        return
    yield f"{which_withheld(found, last_pass_at)}: {found.lets_through}. Version {found.version}."
    for row in found.withheld:
        what = row["replica"] or f"{row['profile']} on {', '.join(row['nodes'])}"
        since = clock.age(datetime.fromisoformat(row["since"]), now)
        also = f" (without it: {row['also']})" if row["also"] else ""
        yield f"  {row['op']:<7} {row['model']}  {what}  ({row['reason']})  {row['rule']}{also}, for {since}: {row['why']}"


def which_withheld(found: BrakeState, last_pass_at: datetime | None) -> str:
    """The list is the last pass's; an act of a person since shows in the next one."""
    if last_pass_at is None or found.changed_at is None or found.changed_at <= last_pass_at:
        return "Withheld"
    return f"The last pass, at {clock.exact(last_pass_at)} and before that act, withheld"


def head(found: BrakeState) -> str:
    if found.is_on:
        end = f"until {clock.exact(found.until)}" if found.until else "until it is released"
        return f"{found.pool}: the brake is on {end}, pulled by {found.actor}: {found.reason}"
    last = f" (since {clock.exact(found.changed_at)}, {found.actor or 'by itself'}: {found.reason})" if found.changed_at else ""
    return f"{found.pool}: the brake is off{last}."


def how_to_release(found: BrakeState) -> str:
    if not (found.is_on or found.withheld):
        return "There is nothing to release."
    return f"Nothing was released. To let through what stands here, add: --seen {found.version} --reason …"
