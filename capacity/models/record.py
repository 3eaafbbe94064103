"""What the passes decided, did and saw."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from quotas.models import Pool

from ..querysets import OfModelQuerySet
from .catalog import LanguageModel


class Pass(models.Model):
    """One pass of a pool. `problems` holds the plan's and the observation's."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="passes")
    at = models.DateTimeField()
    seconds = models.FloatField(default=0)
    generation = models.PositiveBigIntegerField()
    actions = models.PositiveIntegerField(default=0)
    problems = models.JSONField(default=list)
    views = models.JSONField(default=dict, help_text="Age and error of the quota and measurement views.")
    error = models.TextField(blank=True)

    class Meta:
        verbose_name_plural = "passes"
        indexes = [models.Index(fields=["pool", "-at"], name="pass_newest")]

    def __str__(self) -> str:
        return f"{self.pool} at {self.at:%Y-%m-%d %H:%M:%S}"


class Decision(models.Model):
    """One row while outcome, reason and counts stay the same: from `at` until `seen_until`."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="decisions")
    model = models.ForeignKey(LanguageModel, on_delete=models.CASCADE, related_name="decisions")
    at = models.DateTimeField()
    seen_until = models.DateTimeField()
    outcome = models.CharField(max_length=10)
    reason = models.CharField(max_length=40)
    count = models.PositiveBigIntegerField(default=0)
    is_advice = models.BooleanField(default=False)
    numbers = models.JSONField(default=dict, help_text="Demand, capacity and the two bounds, as in llmgw.plan/1.")
    limited_by = models.JSONField(default=list)
    why = models.TextField()
    generation = models.PositiveBigIntegerField(default=0)
    objects = OfModelQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["model", "-at"], name="decision_of_model"),
            models.Index(fields=["pool", "-seen_until"], name="decision_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.model}: {self.outcome}, {self.reason}"

    @property
    def is_withheld(self) -> bool:
        """The brake withheld some of it."""
        return any(isinstance(limit, dict) and limit.get("kind") == "brake" for limit in self.limited_by)


class Action(models.Model):
    """One thing to do to one replica; recorded as pending before it is done."""

    class State(models.TextChoices):
        PENDING = "pending"
        SENT = "sent"
        DONE = "done"
        FAILED = "failed"
        DROPPED = "dropped"
        ADVICE = "advice"
        WITHHELD = "withheld"

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="actions")
    model = models.ForeignKey(LanguageModel, on_delete=models.CASCADE, related_name="actions")
    decision = models.ForeignKey(Decision, on_delete=models.CASCADE, related_name="actions")
    op = models.CharField(max_length=10)
    replica_name = models.CharField(max_length=250, blank=True)
    profile_name = models.CharField(max_length=200, blank=True)
    nodes = models.JSONField(default=list)
    reason = models.CharField(max_length=40)
    for_model = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    generation = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(default=timezone.now)
    sent_at = models.DateTimeField(null=True, blank=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    message = models.TextField(blank=True)
    objects = OfModelQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["pool", "state"], name="action_open"),
            models.Index(fields=["model", "-created_at"], name="action_of_model"),
        ]

    def __str__(self) -> str:
        return f"{self.op} {self.replica_name}"


class Sample(models.Model):
    """What a pass saw of a model: totals, and a packed array of its replicas (see capacity.samples)."""

    model = models.ForeignKey(LanguageModel, on_delete=models.CASCADE, related_name="samples")
    at = models.DateTimeField()
    demand_low = models.BigIntegerField(default=0)
    demand_high = models.BigIntegerField(null=True)
    held_requests = models.BigIntegerField(null=True)
    capacity_ready = models.BigIntegerField(default=0)
    capacity_starting = models.BigIntegerField(default=0)
    rest_capacity = models.BigIntegerField(null=True, help_text="Capacity of the rest if one were taken back.")
    ready = models.PositiveIntegerField(default=0)
    unready = models.PositiveIntegerField(default=0)
    starting = models.PositiveIntegerField(default=0)
    draining = models.PositiveIntegerField(default=0)
    wanted = models.PositiveIntegerField(default=0)
    tokens_per_second = models.FloatField(null=True)
    replicas = models.BinaryField(default=bytes)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "at"], name="sample_once")]
        indexes = [models.Index(fields=["at"], name="sample_age")]

    def __str__(self) -> str:
        return f"{self.model_id} at {self.at:%H:%M:%S}"


class Rollup(models.Model):
    """Five minutes of a model's samples: mean, max and last of each total, and of each replica's load (packed)."""

    model = models.ForeignKey(LanguageModel, on_delete=models.CASCADE, related_name="rollups")
    at = models.DateTimeField(help_text="Start of the five minutes.")
    samples = models.PositiveIntegerField()
    totals = models.JSONField(help_text="Name → [mean, max, last].")
    replicas = models.BinaryField(default=bytes)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "at"], name="rollup_once")]
        indexes = [models.Index(fields=["at"], name="rollup_age")]

    def __str__(self) -> str:
        return f"{self.model_id} at {self.at:%H:%M}"
