"""What runs, as last observed; and who may change it."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone
from simple_history.models import HistoricalRecords

from quotas.models import Pool

from ..querysets import OfModelQuerySet
from .catalog import LanguageModel, Node, Profile


class Lease(models.Model):
    """One row a pool. Whoever holds it until `until` is the pool's one writer; `generation` fences late ones."""

    pool = models.OneToOneField(Pool, on_delete=models.CASCADE, related_name="lease")
    holder = models.CharField(max_length=200, blank=True)
    until = models.DateTimeField(default=timezone.now)
    generation = models.PositiveBigIntegerField(default=0)
    last_pass_at = models.DateTimeField(null=True, blank=True)
    unbroken_since = models.DateTimeField(null=True, blank=True, help_text="Since when passes came without a gap.")
    installation = models.CharField(max_length=64, blank=True, help_text="Which installation writes this pool; empty: none yet.")
    taken_over_at_generation = models.PositiveBigIntegerField(default=0)
    seen_generation = models.PositiveBigIntegerField(
        default=0, help_text="What hosts had seen beyond this database when that was found; 0: nothing, or taken over since."
    )
    take_over_needed = models.TextField(blank=True, help_text="Why the last pass only advised; empty: it was ours.")
    history = HistoricalRecords(
        excluded_fields=["holder", "until", "last_pass_at", "unbroken_since", "seen_generation", "take_over_needed"]
    )

    def __str__(self) -> str:
        return f"lease of {self.pool}: {self.holder or 'free'}"


class Brake(models.Model):
    """One row a pool: withholds everything while it is on, and keeps count of the last minutes' stops and starts."""

    pool = models.OneToOneField(Pool, on_delete=models.CASCADE, related_name="brake")
    is_on = models.BooleanField(default=False)
    until = models.DateTimeField(null=True, blank=True, help_text="Empty: until it is released.")
    reason = models.TextField(blank=True)
    actor = models.CharField(max_length=200, blank=True)
    changed_at = models.DateTimeField(null=True, blank=True)
    recent = models.JSONField(default=list, editable=False, help_text="What was stopped and started in the brake's window.")
    released = models.JSONField(default=dict, editable=False, help_text="What a person let through, and until when.")
    withheld = models.JSONField(default=list, editable=False, help_text="What the newest pass withheld, each with its rule.")
    withheld_since = models.DateTimeField(null=True, blank=True, editable=False)
    history = HistoricalRecords(excluded_fields=["recent", "released", "withheld", "withheld_since"])

    def __str__(self) -> str:
        return f"brake of {self.pool}: {'on' if self.is_on else 'off'}"


class HistoryOfRegistered(HistoricalRecords):
    """Who registered and who forgot an engine that was running already. What passes start has its actions instead."""

    def create_historical_record(self, instance: Any, history_type: str, using: str | None = None) -> None:
        if instance.is_registered:
            super().create_historical_record(instance, history_type, using)


class Replica(models.Model):
    """One engine that serves a model. The row follows the observed inventory and outlives the engine as its history."""

    class State(models.TextChoices):
        STARTING = "starting"
        READY = "ready"
        UNREADY = "unready"
        DRAINING = "draining"
        GONE = "gone"

    name = models.CharField(max_length=250, unique=True)
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="replicas")
    model = models.ForeignKey(LanguageModel, on_delete=models.CASCADE, related_name="replicas")
    profile = models.ForeignKey(Profile, on_delete=models.CASCADE, related_name="replicas")
    nodes = models.JSONField(default=list, blank=True)
    units = models.PositiveBigIntegerField(default=1)
    state = models.CharField(max_length=10, choices=State.choices, default=State.STARTING)
    since = models.DateTimeField(default=timezone.now)
    url = models.CharField(max_length=500, blank=True)
    devices = models.JSONField(default=list, blank=True)
    fingerprint = models.CharField(max_length=64, blank=True, help_text="Of what it was started with; empty: unknown.")
    generation = models.PositiveBigIntegerField(default=0)
    removable = models.BooleanField(default=True)
    is_registered = models.BooleanField(default=False, help_text="It was running already and is only watched.")
    drained_for = models.CharField(max_length=200, blank=True)
    drain_reason = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    ready_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True, help_text="First time its host reported it; empty: not yet.")
    intent = models.CharField(max_length=10, blank=True, help_text="What was asked for and is not seen done yet.")
    intent_at = models.DateTimeField(null=True, blank=True)
    message = models.TextField(blank=True)
    history = HistoryOfRegistered(
        excluded_fields=[
            *("since", "generation", "drained_for", "drain_reason", "created_at", "ready_at", "seen_at"),
            *("intent", "intent_at", "message", "fingerprint"),
        ]
    )
    objects = OfModelQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        indexes = [
            models.Index(fields=["pool"], condition=Q(gone_at__isnull=True), name="replica_present"),
            models.Index(fields=["model", "-created_at"], name="replica_of_model"),
        ]

    def __str__(self) -> str:
        return self.name


class Backoff(models.Model):
    """No start of the profile on the node before `until`; doubles with each failure, cleared by 10 ready minutes."""

    profile = models.ForeignKey(Profile, on_delete=models.CASCADE, related_name="backoffs")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="backoffs")
    failures = models.PositiveIntegerField(default=0)
    until = models.DateTimeField()
    exits = models.JSONField(default=list, help_text="Times of the last exits after being ready.")
    message = models.TextField(blank=True)
    objects = OfModelQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["profile", "node"], name="backoff_once")]

    def __str__(self) -> str:
        return f"{self.profile} on {self.node} until {self.until:%H:%M:%S}"
