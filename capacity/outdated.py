"""Replicas of a model that run what their profile was before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .fingerprints import run_print
from .models import Decision, LanguageModel, Replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdated:
    """`replicas` by name, of `running` in all; `is_paused`: none of them is replaced."""

    replicas: tuple[Replica, ...]
    running: int
    is_paused: bool

    @property
    def sentence(self) -> str:
        """Empty where none is outdated."""
        if not self.replicas:
            return ""
        is_ = "replicas is" if len(self.replicas) == 1 else "replicas are"
        fate = "replacing is paused" if self.is_paused else "replaced one at a time"
        return f"{len(self.replicas)} of {self.running} {is_} outdated: {fate}"


def outdated_of(model: LanguageModel, replicas: Iterable[Replica] | None = None) -> Outdated:
    """`replicas`: those of the model that are not gone, each with its profile; asked for where they are not given."""
    if replicas is None:
        replicas = Replica.objects.filter(model=model, gone_at__isnull=True).select_related("profile").order_by("name")
    running = list(replicas)
    prints = {row.profile_id: run_print(row.profile, model.name) for row in running if row.fingerprint}
    found = tuple(row for row in running if row.fingerprint and row.fingerprint != prints[row.profile_id])
    paused = bool(found) and all(row.profile.replacing_paused for row in found)
    return Outdated(replicas=found, running=len(running), is_paused=paused)


def waits_for(outdated: Outdated, model: LanguageModel, newest: Decision | None) -> str:
    """Why none of them is replaced at the moment, as the newest decision says it; empty where one is, or none has to be."""
    if not outdated.replicas or outdated.is_paused:
        return ""
    if model.mode != LanguageModel.Mode.AUTO:
        return f"The model is in mode {model.mode}, which takes nothing back by itself."
    return newest.why if newest is not None and newest.outcome == "hold" else ""
