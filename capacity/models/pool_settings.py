"""A pool's settings: how its passes judge, wait and brake."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from simple_history.models import HistoricalRecords

from quotas.models import Pool

from .catalog import WHOLE, validate_fraction

BRAKE_WINDOW = [MinValueValidator(1), MaxValueValidator(86_400)]


class PoolSettings(models.Model):
    """A pool's settings, one row a pool. Times are whole seconds."""

    class StaleMeasurements(models.TextChoices):
        ADD_ONLY = "add_only", "count for adding only"
        USE = "use", "count as current"

    class LoadSource(models.TextChoices):
        ENGINES = "engines", "each engine's /metrics"
        PROMETHEUS = "prometheus", "a Prometheus server"

    pool = models.OneToOneField(Pool, on_delete=models.CASCADE, related_name="settings")
    scale_down_fraction = models.CharField(
        max_length=40,
        default="0.70",
        validators=[validate_fraction],
        help_text="A replica goes only if the rest stay under this share.",
    )
    down_window_seconds = models.PositiveBigIntegerField(default=300, validators=WHOLE)
    stale_after_seconds = models.PositiveBigIntegerField(default=45, validators=WHOLE)
    start_timeout_seconds = models.PositiveBigIntegerField(default=900, validators=WHOLE)
    unready_grace_seconds = models.PositiveBigIntegerField(default=120, validators=WHOLE)
    drain_timeout_seconds = models.PositiveBigIntegerField(default=600, validators=WHOLE)
    idle_seconds = models.PositiveBigIntegerField(default=600, validators=WHOLE)
    wake_seconds = models.PositiveBigIntegerField(default=120, validators=WHOLE)
    max_step_up = models.PositiveBigIntegerField(default=4, validators=WHOLE)
    reclaim = models.BooleanField(default=False, help_text="May guaranteed units be taken back from borrowers?")
    reclaim_wait_seconds = models.PositiveBigIntegerField(default=60, validators=WHOLE)
    min_run_seconds = models.PositiveBigIntegerField(default=600, validators=WHOLE)
    shrink_grace_seconds = models.PositiveBigIntegerField(default=300, validators=WHOLE)
    stale_measurements = models.CharField(max_length=10, choices=StaleMeasurements.choices, default=StaleMeasurements.ADD_ONLY)
    node_silent_seconds = models.PositiveBigIntegerField(default=30, validators=WHOLE)
    node_lost_seconds = models.PositiveBigIntegerField(default=300, validators=WHOLE)
    brake_window_seconds = models.PositiveBigIntegerField(
        default=600, validators=BRAKE_WINDOW, help_text="The brake counts what happened in this time: at most a day."
    )
    brake_stops = models.PositiveBigIntegerField(default=2, validators=WHOLE, help_text="Stops in that time that always pass.")
    brake_stop_percent = models.PositiveSmallIntegerField(
        default=10, validators=[MaxValueValidator(100)], help_text="… or this share of the ready replicas, if that is more."
    )
    brake_starts = models.PositiveBigIntegerField(default=8, validators=WHOLE, help_text="Starts in that time that always pass.")
    brake_start_percent = models.PositiveSmallIntegerField(
        default=25, validators=[MaxValueValidator(100)], help_text="… or as many as take this share of the units."
    )
    load_source = models.CharField(
        max_length=10,
        choices=LoadSource.choices,
        default=LoadSource.ENGINES,
        help_text="Where the engines' own counts are read.",
    )
    history = HistoricalRecords()

    class Meta:
        verbose_name = verbose_name_plural = "pool settings"
        constraints = [
            models.CheckConstraint(
                condition=Q(wake_seconds__lt=F("idle_seconds")),
                name="settings_wake_below_idle",
                violation_error_message="wake_seconds must be below idle_seconds: a woken model would go at once.",
            ),
            models.CheckConstraint(
                condition=Q(node_silent_seconds__lt=F("node_lost_seconds")),
                name="settings_silent_below_lost",
                violation_error_message="node_silent_seconds must be below node_lost_seconds.",
            ),
        ]

    def __str__(self) -> str:
        return f"settings of {self.pool}"
