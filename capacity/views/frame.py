"""What the top bar and the rail say: the newest pass, how old it is, and what needs a person."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import OuterRef, Subquery
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.functional import cached_property

from quotas.models import Pool

from ..models import Decision, LanguageModel, Pass
from ..telling import Telling
from .asks import Item
from .asks_of_hosts import Out, out_nodes
from .attention import items, short_decisions
from .brake_marks import Mark, marks


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A last-good view as the newest pass used it. `read_at`: when it was last read well, None never."""

    name: str
    read_at: datetime | None
    error: str


class Frame:
    """Read once a request, and only where a page shows it."""

    def __init__(self, request: HttpRequest) -> None:
        self.user: Any = request.user
        self.now: datetime = timezone.now()
        self.asked_pool = request.GET.get("pool", "")

    @cached_property
    def telling(self) -> Telling:
        """Which names of others the user may be told."""
        return Telling(self.user)

    @cached_property
    def pools(self) -> list[Any]:
        """The pools that the user sees, each with its newest pass, its settings and its brake."""
        newest = Pass.objects.filter(pool=OuterRef("pk")).order_by("-at").values("pk")[:1]
        seen = Pool.objects.select_related("settings", "lease", "brake").annotate(newest_pass=Subquery(newest))
        if not self.user.sees_everything:
            seen = seen.filter(models__in=LanguageModel.objects.visible_to(self.user)).distinct()
        pools = list(seen)
        passes = Pass.objects.in_bulk([pool.newest_pass for pool in pools if pool.newest_pass])
        for pool in pools:
            pool.last_pass = passes.get(pool.newest_pass)
        return pools

    @cached_property
    def pool(self) -> Any | None:
        """The pool that the address names; None is all of them."""
        return next((pool for pool in self.pools if pool.name == self.asked_pool), None)

    @property
    def waiting_pools(self) -> list[Any]:
        """The shown pools that are only advised until somebody takes them over."""
        return [pool for pool in self.shown_pools if getattr(pool, "lease", None) and pool.lease.take_over_needed]

    @property
    def shown_pools(self) -> list[Any]:
        return [self.pool] if self.pool else self.pools

    @cached_property
    def passes(self) -> list[Pass]:
        """The newest pass of each shown pool, the oldest first."""
        return sorted((pool.last_pass for pool in self.shown_pools if pool.last_pass), key=lambda row: row.at)

    @property
    def oldest_pass(self) -> Pass | None:
        return self.passes[0] if self.passes else None

    @property
    def seen(self) -> str:
        """Changes whenever a pool has a newer pass, or its brake was touched."""
        passes = [str(row.pk) for row in sorted(self.passes, key=lambda row: row.pool_id)]
        brakes = [str(int(pool.brake.changed_at.timestamp())) for pool in self.shown_pools if pool.brake.changed_at]
        return "-".join([*passes, *brakes]) or "0"

    @property
    def late_after_seconds(self) -> int:
        return 2 * settings.PASS_SECONDS

    @property
    def is_late(self) -> bool:
        return any((self.now - row.at).total_seconds() > self.late_after_seconds for row in self.passes)

    @cached_property
    def views(self) -> list[View]:
        """Quotas and measurements as the oldest of the newest passes read them."""
        told = self.oldest_pass.views if self.oldest_pass else {}
        return [_view(name, told[name]) for name in ("quotas", "measurements") if isinstance(told.get(name), dict)]

    @cached_property
    def brakes(self) -> list[Mark]:
        """Of the shown pools, those whose brake is on or withholds something."""
        return marks(self)

    @cached_property
    def attention(self) -> list[Item]:
        return items(self)

    @cached_property
    def short_decisions(self) -> list[Decision]:
        return short_decisions(self)

    @cached_property
    def out_nodes(self) -> list[Out]:
        return out_nodes(self)

    @property
    def counts(self) -> dict[str, int]:
        """Place of the rail → how many things there need a person."""
        places = [item.place for item in self.attention]
        return {"now": len(places), **{place: places.count(place) for place in ("nodes", "measurements")}}

    @property
    def examples(self) -> list[Any]:
        return [pool for pool in self.shown_pools if pool.is_example]


def _view(name: str, told: dict[str, Any]) -> View:
    read_at = parse_datetime(str(told.get("read_at") or ""))
    return View(name=name, read_at=read_at, error=str(told.get("error") or ""))


def frame_of(request: HttpRequest) -> Frame:
    """The request's one frame."""
    frame: Frame | None = getattr(request, "_frame", None)
    if frame is None:
        frame = Frame(request)
        request._frame = frame  # type: ignore[attr-defined]
    return frame
