"""Sweeps that llmgw runs, and what hardware costs."""

from __future__ import annotations

from decimal import Decimal

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from simple_history.models import HistoricalRecords

from quotas.models import Pool
from quotas.validators import validate_resource_class

from ..querysets import BenchRunQuerySet
from .catalog import Profile, Slo
from .fleet import Replica
from .measurement import Measurement


class BenchRun(models.Model):
    """One sweep of a profile: asked for, under way, or over. Its replica is out of the reconciler's hands while it is open
    and its heartbeat is fresh, and never longer."""

    class State(models.TextChoices):
        QUEUED = "queued", "queued: waits for the sweep before it"
        WAITING = "waiting", "waiting: for a replica of its own"
        EMPTYING = "emptying", "emptying: its replica finishes what it serves"
        TESTING = "testing"
        DONE = "done"
        STOPPED = "stopped"
        FAILED = "failed"

    OPEN = (State.QUEUED, State.WAITING, State.EMPTYING, State.TESTING)

    class Api(models.TextChoices):
        CHAT = "chat", "chat completions"
        COMPLETIONS = "completions"
        EMBEDDINGS = "embeddings"
        RERANK = "rerank"

    profile = models.ForeignKey(Profile, on_delete=models.CASCADE, related_name="bench_runs")
    replica = models.ForeignKey(Replica, on_delete=models.SET_NULL, null=True, blank=True, related_name="bench_runs")
    own_replica = models.BooleanField(default=False, help_text="A replica is started for it; else one that runs is taken.")
    endpoint = models.CharField(max_length=500, blank=True, help_text="An address outside of the fleet; empty: a replica's.")
    served_name = models.CharField(
        max_length=200, blank=True, help_text="What that address calls the model; empty: as it is called here."
    )
    slo = models.ForeignKey(Slo, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", verbose_name="SLO")
    slo_text = models.CharField(
        max_length=200, blank=True, help_text="Bounds of its own instead of an SLO's: ttft p95 500, tpot p95 50."
    )
    api = models.CharField(max_length=12, choices=Api.choices, default=Api.CHAT)
    levels = models.CharField(max_length=500, default="auto")
    seconds = models.PositiveIntegerField(default=60, help_text="Of each level, warm-up apart.")
    input_tokens = models.PositiveIntegerField(default=512)
    output_tokens = models.PositiveIntegerField(default=128)
    same_prompt = models.BooleanField(
        default=False, help_text="Every request sends the same prompt: the prefix cache is part of what is measured."
    )
    with_token = models.BooleanField(default=False, help_text="A bearer token goes with it; it is kept elsewhere, and not long.")
    take_last = models.BooleanField(default=False, help_text="It may take the only ready replica of its model.")
    give_back = models.BooleanField(
        default=False, help_text="Its replica was started for it, and its model does not act: the next pass drains it."
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    actor = models.CharField(max_length=200, blank=True)
    reason = models.TextField(blank=True)
    stop_asked = models.BooleanField(default=False)
    stopped_by = models.CharField(max_length=200, blank=True)
    parked = models.BooleanField(
        default=False, help_text="Nobody carries it: the worker takes it up again when its replica is ready."
    )
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    progress = models.JSONField(default=dict, blank=True, help_text="Levels done and to do, seconds left, what runs now.")
    stages = models.JSONField(default=list, blank=True, help_text="What each level so far has given.")
    message = models.TextField(blank=True, help_text="How it ended, or what it waits for.")
    measurement = models.ForeignKey(Measurement, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    objects = BenchRunQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["profile"],
                condition=Q(state__in=("queued", "waiting", "emptying", "testing")),
                name="bench_run_once",
                violation_error_message="A sweep of this profile is queued or under way already.",
            )
        ]

    def __str__(self) -> str:
        return f"sweep of {self.profile}, {self.get_state_display()}"


class Price(models.Model):
    """What one unit of a class costs an hour, from a day on. The newest that has begun is in force."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="prices")
    resource = models.CharField("resource class", max_length=200, validators=[validate_resource_class])
    per_unit_hour = models.DecimalField(max_digits=14, decimal_places=6, validators=[MinValueValidator(Decimal(0))])
    currency = models.CharField(max_length=8, default="EUR", help_text="As it is shown, such as EUR.")
    since = models.DateTimeField(default=timezone.now)
    history = HistoricalRecords()

    class Meta:
        ordering = ["pool__name", "resource", "-since", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["pool", "resource", "since"],
                name="price_once",
                violation_error_message="There is a price of that class from that time on.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.per_unit_hour} {self.currency} an hour for each {self.resource} of {self.pool}"
