"""Who may see which scopes. Everything that belongs to a scope is filtered through here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from .models import User

MAX_DEPTH = 32


class ScopeQuerySet(models.QuerySet[Any]):
    def visible_to(self, user: User) -> ScopeQuerySet:
        """All of them for operators and admins, else the subtrees of the scopes that the user is a member of."""
        if user.sees_everything:
            return self
        return self.filter(pk__in=subtree(user.memberships.values_list("scope_id", flat=True)))


class PoolQuerySet(models.QuerySet[Any]):
    def visible_to(self, user: User) -> PoolQuerySet:
        """All for operators and admins, else those in which a scope of theirs has a model, or a quota that binds it."""
        if user.sees_everything:
            return self
        scopes = subtree(user.memberships.values_list("scope_id", flat=True))
        mine = models.Q(models__scope_id__in=scopes) | models.Q(quotas__scope_id__in=with_ancestors(scopes))
        return self.filter(mine).distinct()


class EdgeQuerySet(models.QuerySet[Any]):
    def visible_to(self, user: User) -> EdgeQuerySet:
        """Those between scopes that the user sees."""
        if user.sees_everything:
            return self
        scopes = subtree(user.memberships.values_list("scope_id", flat=True))
        return self.filter(child_id__in=scopes, parent_id__in=scopes)


class QuotaQuerySet(models.QuerySet[Any]):
    def visible_to(self, user: User) -> QuotaQuerySet:
        if user.sees_everything:
            return self
        return self.filter(scope_id__in=subtree(user.memberships.values_list("scope_id", flat=True)))


class MembershipQuerySet(models.QuerySet[Any]):
    def visible_to(self, user: User) -> MembershipQuerySet:
        """All for admins, else one's own and those below the scopes that one manages."""
        if user.is_superuser:
            return self
        lower = subtree(managed_nodes(user))
        return self.filter(models.Q(user=user) | models.Q(scope_id__in=lower))


def subtree(roots: Any) -> set[int]:
    """The ids of the roots and all that lies below them, level by level (cycles end, depth is bounded)."""
    return _reached(roots, "parent_id", "child_id")


def managed_nodes(user: User) -> set[int]:
    """The ids of the scopes that the user is a manager of: what he may write lies below them."""
    return set(user.memberships.filter(role="manager").values_list("scope_id", flat=True))


def below(scope: int) -> set[int]:
    """The ids of all that lies below a scope, without itself."""
    return subtree([scope]) - {scope}


def with_ancestors(scopes: Any) -> set[int]:
    """The ids of the scopes and all above them: those whose limits bind them."""
    return _reached(scopes, "child_id", "parent_id")


def _reached(starts: Any, known: str, wanted: str) -> set[int]:
    from .models import ScopeEdge

    seen = set(starts)
    frontier = seen
    for _ in range(MAX_DEPTH):
        fresh = set(ScopeEdge.objects.filter(**{f"{known}__in": frontier}).values_list(wanted, flat=True)) - seen
        if not fresh:
            break
        seen |= fresh
        frontier = fresh
    return seen
