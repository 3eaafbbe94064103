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
from quotas.command import OperatorCommand
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
        parser.add_argument("--seen", default="", metavar="VERSION", help="With --release: the version of the list that you saw.")
        parser.add_argument("--show", action="store_true", help="Only say how it stands.")
        parser.add_argument("--json", action="store_true", dest="as_json", help="How it stands, as the API gives it.")

    def handle(self, *args: Any, **options: Any) -> None:
        now = datetime.now(UTC)
        pool = named(options["pool"] or only_pool())
        try:
            self.act(pool, options, now)
        except ValueError as error:
            raise CommandError(str(error)) from None
        except ValidationError as error:
            raise CommandError(" ".join(sentences(error))) from error
        found = brake_state.state(named(pool.name), now)
        if options["as_json"]:
            self.stdout.write(json.dumps(brake_state.document(found), ensure_ascii=False))
        else:
            self.stdout.write("\n".join(lines(found, now)))
        if options["release"] and not options["seen"] and not options["as_json"]:
            self.stdout.write(how_to_release(found))

    def act(self, pool: Pool, options: dict[str, Any], now: datetime) -> None:
        if options["show"] or (options["release"] and not options["seen"]):
            return
        reason = options["reason"]
        if options["release"]:
            services.brake_release(pool, version=options["seen"], actor=None, reason=reason, now=now)
        else:
            until = brake_state.parse_until(options["until"], now)
            services.brake_pull(pool, until=until, actor=None, reason=reason, now=now)


def named(name: str) -> Pool:
    found = Pool.objects.select_related("settings", "brake").filter(name=name).first()
    if found is None:
        raise CommandError(f"There is no pool “{name}”.")
    return found


def lines(found: BrakeState, now: datetime) -> Iterator[str]:
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
    yield f"Withheld: {found.lets_through}. Version {found.version}."
    for row in found.withheld:
        what = row["replica"] or f"{row['profile']} on {', '.join(row['nodes'])}"
        since = clock.age(datetime.fromisoformat(row["since"]), now)
        also = f" (without it: {row['also']})" if row["also"] else ""
        yield f"  {row['op']:<7} {row['model']}  {what}  ({row['reason']})  {row['rule']}{also}, for {since}: {row['why']}"


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
