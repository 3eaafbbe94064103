"""What a reader is told of rows that may name others' scopes and models: decisions, replicas that were given back, actions.

A limit that binds a model is told with the ancestor that sets it; for whom units are kept or given back is nobody else's matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from quotas.seen import Seen

from .domain.phrases import names_askers, stop_phrase, without_askers
from .domain.reasons import REASONS
from .domain.types import LimitedBy
from .models import Action, Decision, LanguageModel, Replica

WITHHELD: Final = "The reason names what is not yours to see."
NAMELESS: Final[Mapping[str, str]] = {
    "limit": "a limit of a scope that is not yours to see",
    "guarantee_reserved": "units are kept for a scope that is not yours to see",
}
FOR_OTHERS: Final = frozenset({"reclaimed"})
"""Reasons whose sentence names somebody else's model, in words of an older version too."""
TOLD_OF_OTHERS: Final = ("kind", "target")
Limit = Mapping[str, Any]


class Telling(Seen):
    """`rows` come back with what may be told; nothing is looked up where they name nobody."""

    def model(self, name: str) -> bool:
        """May the reader be told the name of this model?"""
        return self.everything or name in self._models

    @cached_property
    def _models(self) -> set[str]:
        return set(LanguageModel.objects.visible_to(self.user).values_list("name", flat=True))

    def rows(self, rows: Iterable[Any]) -> list[Any]:
        """The same rows, not to be saved."""
        found = list(rows)
        if not self.everything:
            for row in found:
                self._tell(row)
        return found

    def row(self, row: Any) -> Any:
        return self.rows([row])[0]

    def _tell(self, row: Any) -> None:
        match row:
            case Decision():
                row.why, row.limited_by = self.why(row), [self._limit(limit) for limit in row.limited_by]
            case Replica() if row.drained_for and not self.model(row.drained_for):
                row.drained_for = ""
            case Action() if row.for_model and not self.model(row.for_model):
                row.for_model = ""

    def why(self, row: Decision) -> str:
        """The sentence, without what was in the way where that is others'."""
        withheld = f"{REASONS[row.reason].sentence} {WITHHELD}" if row.reason in REASONS else WITHHELD
        text = without_askers(row.why, self.model)
        if row.reason in FOR_OTHERS and not names_askers(row.why):
            return withheld
        for limit in filter(self._is_foreign, row.limited_by):
            said = _phrase(limit)
            if not said or said not in text:
                return withheld
            text = text.replace(said, NAMELESS[limit["kind"]])
        return text

    def _is_foreign(self, limit: Any) -> bool:
        if not isinstance(limit, dict) or "scope" not in limit:
            return False
        name = str(limit["scope"])
        return not (self.binding(name) if limit.get("kind") == "limit" else self.scope(name))

    def _limit(self, limit: Any) -> Any:
        """A limit of others keeps its kind and class."""
        return {key: limit.get(key) for key in TOLD_OF_OTHERS} if self._is_foreign(limit) else limit


def _phrase(limit: Limit) -> str:
    """How the sentence says it; empty where a row of another version says it otherwise."""
    facts = {key: value for key, value in limit.items() if key != "kind"}
    try:
        return stop_phrase(LimitedBy(kind=limit["kind"], facts=facts)) if limit.get("kind") in NAMELESS else ""
    except KeyError:
        return ""
