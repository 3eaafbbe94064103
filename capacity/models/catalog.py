"""The catalogue: what people write down. Every row has its history."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from simple_history.models import HistoricalRecords

from quotas.models import Pool, Scope
from quotas.validators import LARGEST, validate_name, validate_resource_class

from ..querysets import ModelQuerySet, OfModelQuerySet

WHOLE = [MaxValueValidator(LARGEST)]
POSITIVE = [MinValueValidator(1), MaxValueValidator(LARGEST)]


def validate_fraction(value: str) -> None:
    """A share between 0 and 1, exact: `0.70` or `7/10`."""
    try:
        share = Fraction(value.strip()) if len(value) <= 40 and "e" not in value.lower() else None
    except (ValueError, ZeroDivisionError, InvalidOperation):
        share = None
    if share is None or not 0 < share < 1:
        raise ValidationError("Write a share between 0 and 1, such as 0.70 or 7/10.")


def validate_text_map(value: Any) -> None:
    """Text → text, as labels, selectors and parameters are."""
    if not isinstance(value, dict) or not all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
        raise ValidationError('Write text for text, such as {"zone": "a"}.')


def validate_parameters(value: Any) -> None:
    """Text → text or a number, which is stored as text (`as_text`)."""
    kinds = (str, int, float)
    if not isinstance(value, dict) or any(isinstance(v, bool) or not isinstance(v, kinds) for v in value.values()):
        raise ValidationError('Write a text or a number for each name, such as {"tensor_parallel": 2}.')
    if any(isinstance(v, float) and not math.isfinite(v) for v in value.values()):
        raise ValidationError("A number must be finite.")


def as_text(value: Any) -> Any:
    """A parameter as orders carry it: 2 → "2", 0.5 → "0.5", 1e-07 → "0.0000001". What is no number stays what it is."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return format(Decimal(repr(value)), "f") if is_number else value


def validate_resources(value: Any) -> None:
    """Resource class → whole units."""
    if not isinstance(value, dict):
        raise ValidationError('Write classes with whole units, such as {"gpu/h100": 8}.')
    for name, units in value.items():
        validate_resource_class(name)
        if isinstance(units, bool) or not isinstance(units, int) or not 0 <= units <= LARGEST:
            raise ValidationError(f"{name}: {units} is not a whole number from 0 to 10^12.")


class Slo(models.Model):
    """What a measured replica keeps: a percentile and a bound in ms for each latency that counts."""

    name = models.CharField(max_length=200, unique=True, validators=[validate_name])
    ttft_percentile = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(99)]
    )
    ttft_ms = models.PositiveIntegerField("TTFT bound, ms", null=True, blank=True)
    tpot_percentile = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(99)]
    )
    tpot_ms = models.PositiveIntegerField("TPOT bound, ms", null=True, blank=True)
    e2e_percentile = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(99)]
    )
    e2e_ms = models.PositiveIntegerField("end-to-end bound, ms", null=True, blank=True)
    max_error_share = models.DecimalField(
        max_digits=5, decimal_places=4, default=Decimal("0.01"), validators=[MinValueValidator(0), MaxValueValidator(1)]
    )
    history = HistoricalRecords()

    class Meta:
        verbose_name = "SLO"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """A host. Its resources are what it reports; typed ones stand in where nothing reports."""

    name = models.CharField(max_length=200, unique=True, validators=[validate_name])
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="nodes")
    labels = models.JSONField(default=dict, blank=True, validators=[validate_text_map])
    schedulable = models.BooleanField(default=True, help_text="Off: cordoned. Nothing new is placed; what runs is moved away.")
    resources = models.JSONField(
        default=dict, blank=True, validators=[validate_resources], help_text="Class → whole units, as last reported."
    )
    foreign = models.JSONField(default=dict, blank=True, editable=False)
    foreign_devices = models.JSONField(
        default=dict, blank=True, editable=False, help_text="Device → class, of others' processes."
    )
    templates = models.JSONField(default=dict, blank=True, editable=False, help_text="Template → parameter → must it be given?")
    reported_at = models.DateTimeField(null=True, blank=True, editable=False)
    host_clock_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="The newest report's own time, by the host's clock."
    )
    history = HistoricalRecords(
        excluded_fields=["resources", "foreign", "foreign_devices", "templates", "reported_at", "host_clock_at"]
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class LanguageModel(models.Model):
    """A model that the pool serves, and how far it may be scaled."""

    class Mode(models.TextChoices):
        AUTO = "auto", "auto: acts"
        ADD_ONLY = "add_only", "add only: adds act, removals are advice"
        ADVISE = "advise", "advise: decides, does nothing"
        PAUSED = "paused", "paused: left alone"

    name = models.CharField(max_length=200, unique=True, validators=[validate_name])
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="models")
    scope = models.ForeignKey(
        Scope,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="models",
        help_text="Who the replicas are counted against.",
    )
    mode = models.CharField(max_length=10, choices=Mode.choices, default=Mode.ADVISE)
    priority = models.BigIntegerField(
        default=0, validators=[MinValueValidator(-LARGEST), *WHOLE], help_text="Higher is served first when room is short."
    )
    min_replicas = models.PositiveBigIntegerField(
        default=1, validators=WHOLE, help_text="0 without “scale to zero” still keeps one."
    )
    max_replicas = models.PositiveBigIntegerField(
        null=True, blank=True, validators=WHOLE, help_text="Empty is unbounded; 0 is off."
    )
    scale_to_zero = models.BooleanField(default=False, help_text="With min 0: may the last replica go?")
    down_window_seconds = models.PositiveBigIntegerField(null=True, blank=True, validators=WHOLE, help_text="Empty: the pool's.")
    drain_timeout_seconds = models.PositiveBigIntegerField(
        null=True, blank=True, validators=WHOLE, help_text="Empty: the pool's."
    )
    scale_down_fraction = models.CharField(
        max_length=40, null=True, blank=True, validators=[validate_fraction], help_text="Empty: the pool's."
    )
    served_names = models.JSONField(default=list, blank=True, help_text="Other names (adapters, aliases) that requests may use.")
    slo = models.ForeignKey(Slo, on_delete=models.SET_NULL, null=True, blank=True, verbose_name="SLO")
    input_tokens = models.PositiveBigIntegerField(
        null=True, blank=True, validators=POSITIVE, help_text="Of a usual request. Measurements are made for it. Empty: not said."
    )
    output_tokens = models.PositiveBigIntegerField(
        null=True, blank=True, validators=POSITIVE, help_text="Of a usual answer. Measurements are made for it. Empty: not said."
    )
    woken_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_change_at = models.DateTimeField(null=True, blank=True, editable=False)
    short_since = models.DateTimeField(null=True, blank=True, editable=False)
    disagree_since = models.DateTimeField(null=True, blank=True, editable=False)
    probation = models.JSONField(default=dict, blank=True, editable=False, help_text="The removal that is watched now.")
    removals_rest_until = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_decision = models.OneToOneField("Decision", on_delete=models.SET_NULL, null=True, editable=False, related_name="+")
    history = HistoricalRecords(
        excluded_fields=[
            "woken_at",
            "last_change_at",
            "short_since",
            "disagree_since",
            "probation",
            "removals_rest_until",
            "last_decision",
        ]
    )
    objects = ModelQuerySet.as_manager()

    class Meta:
        verbose_name = "model"
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(max_replicas__isnull=True) | Q(max_replicas__gte=F("min_replicas")),
                name="model_max_covers_min",
                violation_error_message="max_replicas is below min_replicas.",
            )
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        self.scale_down_fraction = self.scale_down_fraction or None
        names = self.served_names
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValidationError({"served_names": 'Write a list of names, such as ["llama", "llama-lora"].'})
        for name in names:
            validate_name(name)


class Profile(models.Model):
    """A way to run a model: so many units of one class on each of so many hosts, from a runtime template."""

    class State(models.TextChoices):
        ACTIVE = "active"
        NO_NEW = "no_new", "no new ones"
        RETIRE = "retire", "retire: replaced, then drained"

    model = models.ForeignKey(LanguageModel, on_delete=models.CASCADE, related_name="profiles")
    name = models.CharField(max_length=200, validators=[validate_name])
    resource = models.CharField("resource class", max_length=200, validators=[validate_resource_class])
    units = models.PositiveBigIntegerField(default=1, validators=POSITIVE, help_text="Of the class, on each host.")
    hosts = models.PositiveBigIntegerField(default=1, validators=POSITIVE)
    priority = models.BigIntegerField(
        default=0, validators=[MinValueValidator(-LARGEST), *WHOLE], help_text="Higher is tried first."
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.ACTIVE)
    start_timeout_seconds = models.PositiveBigIntegerField(
        null=True, blank=True, validators=WHOLE, help_text="Empty: the pool's."
    )
    selector = models.JSONField(
        default=dict, blank=True, validators=[validate_text_map], help_text="Labels that a node must carry."
    )
    engine = models.CharField(max_length=100, blank=True, help_text="What the template starts, such as vllm.")
    engine_version = models.CharField(
        max_length=100, blank=True, help_text="Write the new one after an upgrade: measurements of the old one become outdated."
    )
    template = models.CharField("runtime template", max_length=100, blank=True, help_text="A name in the host's template file.")
    parameters = models.JSONField(
        default=dict, blank=True, validators=[validate_parameters], help_text="Values that the template declares."
    )
    replacing_paused = models.BooleanField(
        default=False, help_text="On: replicas that run what this profile was before stay until it is off again."
    )
    history = HistoricalRecords()
    objects = OfModelQuerySet.as_manager()

    class Meta:
        ordering = ["model__name", "-priority", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["model", "name"], name="profile_once", violation_error_message="This model has a profile of that name."
            ),
            models.CheckConstraint(
                condition=Q(units__gte=1, hosts__gte=1),
                name="profile_takes_units",
                violation_error_message="A replica takes at least one unit.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} · {self.name}"

    def clean(self) -> None:
        if isinstance(self.parameters, dict):
            self.parameters = {name: as_text(value) for name, value in self.parameters.items()}
