"""Who may see and do what, beyond `visible_to`: pools and nodes have no scope, gateways serve whole pools."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from capacity.models import LanguageModel, Node
from capacity.observation.served_names import owners, plain
from quotas.api.errors import bad_request, not_found
from quotas.models import Membership, Pool, User
from quotas.querysets import subtree


def serves_pools(user: User) -> bool:
    """Operators, and the service accounts with which gateways sign in: they see where every model of a pool may be sent."""
    return user.may_operate or user.is_service


def visible_pools(user: User) -> QuerySet[Pool]:
    found: QuerySet[Pool] = Pool.objects.visible_to(user)
    return found


def visible_nodes(user: User) -> QuerySet[Node]:
    """Hardware belongs to no scope: operators and admins see it."""
    return Node.objects.all() if user.sees_everything else Node.objects.none()


def asked_pool(request: Any) -> Pool:
    """The pool of `?pool=`; without it the only one there is. 404 for a foreign or unknown one."""
    name = request.query_params.get("pool")
    pools = Pool.objects.all() if serves_pools(request.user) else visible_pools(request.user)
    if name:
        found = None if "\0" in name else pools.filter(name=name).first()
        if found is None:
            raise not_found()
        return found
    candidates = list(pools[:2])
    if len(candidates) != 1:
        raise bad_request("Say which pool: ?pool=NAME.", "pool")
    return candidates[0]


def may_wake(user: User, model: LanguageModel) -> bool:
    """Operators, gateways, and managers of the model's scope or of one above it."""
    if serves_pools(user):
        return True
    managed = user.memberships.filter(role=Membership.Role.MANAGER).values_list("scope_id", flat=True)
    return model.scope_id in subtree(managed)


def model_of(models: QuerySet[LanguageModel], name: str) -> LanguageModel:
    """The model of that name, else the one that serves under it (in a pool the first by name).

    404 where there is none among `models`, 400 where several pools have one."""
    if "\0" in name:
        raise not_found()
    if found := models.filter(name=name).first():
        return found
    served = models.order_by("-name").values_list("name", "pool_id", "served_names")
    keys = {pool: key for key, pool, aliases in served if name in plain(aliases)}
    if len(keys) > 1:
        raise bad_request(f"Models of several pools serve under that name: {', '.join(sorted(keys.values()))}. Name one of them.")
    if not keys:
        raise not_found()
    return models.get(name=keys.popitem()[1])


def canonical_names(models: QuerySet[LanguageModel]) -> dict[str, str]:
    """Each name that a request may use → the model's own."""
    return owners((name, plain(aliases)) for name, aliases in models.order_by().values_list("name", "served_names"))
