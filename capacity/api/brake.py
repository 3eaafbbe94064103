"""A pool's brake: how it stands, and the acts of pulling and releasing it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from capacity import services
from capacity.api import bodies
from capacity.api.access import visible_pools
from capacity.api.rows import Pools
from capacity.api.verbs import OPERATORS, NamedLikeAVerb, read
from capacity.briefings import brake_state
from quotas.api.base import ApiView, require
from quotas.api.catalog import IF_MATCH
from quotas.api.errors import bad_request, not_found
from quotas.api.etags import require_match
from quotas.models import Pool


class PoolBrake(NamedLikeAVerb, ApiView):
    verb = "brake"
    rows = Pools

    @extend_schema(operation_id="pool_brake", responses={200: bodies.BrakeStands, **bodies.refused(403, 404)})
    def get(self, request: Any, name: str) -> Any:
        """How the brake stands: what was counted, what is withheld, by which rule, since when. Its ETag goes with a release."""
        if (found := self.whole_row(request, name)) is not None:
            return found
        return self.answer(self.pool(request, name), self.now())

    @extend_schema(
        operation_id="pool_brake_set",
        parameters=[IF_MATCH],
        request=bodies.BrakeAsked,
        responses={200: bodies.BrakeStands, **bodies.refused(400, 403, 404, 409, 412, 428)},
        examples=[bodies.BRAKE_EXAMPLE],
    )
    def post(self, request: Any, name: str) -> Response:
        """Pull it: from the next pass on nothing of the pool is started or stopped. Release it (`"on": false`): it is off, and
        exactly what was withheld passes. A release, and another end or reason for a brake that is on, need `If-Match` with the
        ETag of what you have read."""
        pool, now = self.pool(request, name), self.now()
        asked = read(bodies.BrakeAsked, request)
        if asked["on"]:
            self.pull(pool, request, asked, now)
        elif asked["until"] is not None:
            raise bad_request("A release has no end of its own: it holds for one window.", "until")
        else:
            self.release(pool, request, asked["reason"], now)
        return self.answer(self.pool(request, name), now)

    def pull(self, pool: Pool, request: Any, asked: dict[str, Any], now: datetime) -> None:
        """In an emergency it needs no look; one that is on already is somebody's."""
        found = brake_state.state(pool, now)
        if found.is_on:
            require_match(request.headers.get("If-Match"), tag(found), brake_state.document(found))
        services.brake_pull(
            pool, until=asked["until"], actor=request.user, reason=asked["reason"], now=now, version=found.version
        )

    def release(self, pool: Pool, request: Any, reason: str, now: datetime) -> None:
        found = brake_state.state(pool, now)
        require_match(request.headers.get("If-Match"), tag(found), brake_state.document(found))
        services.brake_release(pool, version=found.version, actor=request.user, reason=reason, now=now)

    def pool(self, request: Any, name: str) -> Pool:
        """It names what runs for every scope: operators and admins read it. Of a pool that one does not see, nothing is said."""
        found = (
            None if "\0" in name else visible_pools(request.user).filter(name=name).select_related("settings", "brake").first()
        )
        if found is None:
            raise not_found()
        require(request.user.may_operate, OPERATORS)
        return found

    @staticmethod
    def answer(pool: Pool, now: datetime) -> Response:
        found = brake_state.state(pool, now)
        return Response(brake_state.document(found), headers={"ETag": tag(found)})


def tag(found: brake_state.BrakeState) -> str:
    return f'"{found.version}"'
