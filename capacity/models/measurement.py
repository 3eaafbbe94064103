"""What one replica of a profile was measured to serve: a number, its evidence, and its history."""

from __future__ import annotations

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from simple_history.models import HistoricalRecords

from quotas.validators import LARGEST

from ..querysets import MeasurementQuerySet
from .catalog import WHOLE, Profile, Slo


class Measurement(models.Model):
    """What one replica of a profile serves within its SLO. The newest `current` of a profile is in use, else its newest."""

    class Status(models.TextChoices):
        CURRENT = "current"
        STALE = "stale", "outdated"
        ASSUMED = "assumed"

    class Kind(models.TextChoices):
        LOCATED = "located", "located: the next level missed the SLO"
        AT_LEAST = "at_least", "at least: nothing above was measured"
        NEVER_MET = "never_met", "never met the SLO"
        NOT_BINDING = "not_binding", "not binding: no latency was measured"

    class Cause(models.TextChoices):
        FINGERPRINT = "fingerprint", "the profile has changed"
        SELF_CHECK = "self_check", "live latencies contradict it"
        PERSON = "person", "somebody said so"
        ASIDE = "aside", "set aside: another one is in force until somebody says otherwise"

    profile = models.ForeignKey(Profile, on_delete=models.CASCADE, related_name="measurements")
    max_concurrency = models.PositiveBigIntegerField(
        validators=WHOLE, help_text="Requests in flight within the SLO; 0: met it at no load."
    )
    tokens_per_second = models.DecimalField(
        max_digits=20, decimal_places=6, validators=[MinValueValidator(0), *WHOLE], help_text="Output tokens at that concurrency."
    )
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.ASSUMED)
    slo = models.ForeignKey(Slo, on_delete=models.SET_NULL, null=True, blank=True, verbose_name="SLO")
    kind = models.CharField(max_length=12, choices=Kind.choices, blank=True, help_text="What the sweep says; empty: no sweep.")
    fingerprint = models.CharField(
        max_length=64, blank=True, editable=False, help_text="What it was measured of; empty: unknown."
    )
    digest = models.CharField(
        max_length=64, blank=True, editable=False, db_index=True, help_text="Of its sweep: the same one twice is one measurement."
    )
    stale_cause = models.CharField(max_length=12, choices=Cause.choices, blank=True, editable=False)
    in_force_since = models.DateTimeField(
        null=True,
        blank=True,
        default=timezone.now,
        editable=False,
        help_text="Empty: it is not, nor was last, and no plan rests on it.",
    )
    stale_why = models.TextField(blank=True, editable=False, help_text="Why it is outdated, with the figures.")
    self_check = models.JSONField(
        default=dict, blank=True, editable=False, help_text="Live latencies beside it, and request shape."
    )
    measured_at = models.DateTimeField(default=timezone.now)
    evidence = models.JSONField(default=dict, blank=True, help_text="Engine, version, tool and all stages of the sweep.")
    note = models.TextField(blank=True)
    is_new = False
    """Whether it was written just now; not a column."""
    history = HistoricalRecords(excluded_fields=["self_check"])
    objects = MeasurementQuerySet.as_manager()

    class Meta:
        ordering = ["-measured_at", "-id"]
        get_latest_by = ["measured_at", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(max_concurrency__range=(0, LARGEST), tokens_per_second__gte=0),
                name="measurement_numbers",
                violation_error_message="A measurement's numbers are from 0 to 10^12.",
            )
        ]

    @property
    def status_word(self) -> str:
        """`current`, `outdated`, `assumed`; `set aside` for one that waits for somebody to put it in force."""
        aside = self.status == self.Status.STALE and self.stale_cause == self.Cause.ASIDE
        return "set aside" if aside else self.get_status_display().lower()

    def __str__(self) -> str:
        return f"{self.profile}: {self.max_concurrency} in flight, {self.tokens_per_second} tokens/s"
