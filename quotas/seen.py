"""Which names a reader may be told, looked up once a request and only where an answer may hold others'."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from .models import Scope
from .querysets import subtree, with_ancestors


class Seen:
    """The scopes of a user: those that he sees, and those above them. A limit of the latter binds him, so its row is told by
    name and number; nothing else of them is."""

    def __init__(self, user: Any) -> None:
        self.user = user

    @property
    def everything(self) -> bool:
        return bool(self.user.sees_everything)

    def scope(self, name: str) -> bool:
        """May the reader look at this scope?"""
        return self.everything or name in self._scopes

    def binding(self, name: str) -> bool:
        """May the reader be told that a limit of this scope binds him?"""
        return self.everything or name in self._above

    @cached_property
    def _ids(self) -> set[int]:
        return subtree(self.user.memberships.values_list("scope_id", flat=True))

    @cached_property
    def _scopes(self) -> set[str]:
        return _names(self._ids)

    @cached_property
    def _above(self) -> set[str]:
        return _names(with_ancestors(self._ids))


def _names(ids: set[int]) -> set[str]:
    return set(Scope.objects.filter(pk__in=ids).values_list("name", flat=True))
