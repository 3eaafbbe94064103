"""Who may use how much: people, pools, the graph of scopes, and their quotas."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.functional import cached_property
from simple_history.models import HistoricalRecords

from .querysets import EdgeQuerySet, MembershipQuerySet, PoolQuerySet, QuotaQuerySet, ScopeQuerySet, managed_nodes
from .validators import LARGEST, validate_name, validate_target


class User(AbstractUser):
    """A person or a service account. Admins are superusers; operators run nodes, models, profiles and measurements."""

    is_operator = models.BooleanField("operator", default=False, help_text="Edits nodes, models, profiles and measurements.")
    is_service = models.BooleanField("service account", default=False, help_text="Has tokens and no password.")
    must_change_password = models.BooleanField(default=False)

    @property
    def must_choose_password(self) -> bool:
        """Nothing is open to him before. A service account has no password."""
        return self.must_change_password and not self.is_service

    @property
    def sees_everything(self) -> bool:
        return bool(self.is_active and (self.is_superuser or self.is_operator))

    @cached_property
    def edits_tenancy(self) -> bool:
        """Admins edit all scopes, quotas and roles; managers those below their own scope."""
        return self.is_active and (self.is_superuser or bool(managed_nodes(self)))

    @property
    def may_operate(self) -> bool:
        """Edits what runs. The same people who see everything, until roles differ."""
        return self.sees_everything


class Pool(models.Model):
    """A fleet that shares hardware and quotas: one pass, one lease, one set of settings."""

    name = models.CharField(max_length=200, unique=True, validators=[validate_name])
    is_example = models.BooleanField(default=False, editable=False)
    history = HistoricalRecords()
    objects = PoolQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Scope(models.Model):
    """An organisation, team, project or key."""

    name = models.CharField(max_length=200, unique=True, validators=[validate_name])
    parents = models.ManyToManyField("self", through="ScopeEdge", symmetrical=False, related_name="children")
    history = HistoricalRecords()
    objects = ScopeQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ScopeEdge(models.Model):
    """A scope's place under a parent. Every parent's limit binds; guarantees come through the funding one."""

    child = models.ForeignKey(Scope, on_delete=models.CASCADE, related_name="parent_edges")
    parent = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="child_edges")
    is_funding = models.BooleanField("funding parent", default=False)
    position = models.PositiveIntegerField(default=0, editable=False)
    history = HistoricalRecords()
    objects = EdgeQuerySet.as_manager()

    class Meta:
        ordering = ["child", "position", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["child", "parent"], name="edge_once", violation_error_message="This parent is named twice."
            ),
            models.UniqueConstraint(
                fields=["child"],
                condition=Q(is_funding=True),
                name="edge_one_funding",
                violation_error_message="A scope has one funding parent.",
            ),
            models.CheckConstraint(
                condition=~Q(child=F("parent")), name="edge_no_self", violation_error_message="A scope cannot be its own parent."
            ),
        ]

    def __str__(self) -> str:
        return f"{self.child} under {self.parent}"


class CapacityQuota(models.Model):
    """How many whole units (or replicas, for `model:NAME`) of a pool a scope is guaranteed and limited to."""

    scope = models.ForeignKey(Scope, on_delete=models.CASCADE, related_name="quotas")
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="quotas")
    target = models.CharField(
        max_length=206, validators=[validate_target], help_text="A resource class (gpu/h100), or model:NAME."
    )
    guarantee = models.PositiveBigIntegerField(
        null=True, blank=True, validators=[MaxValueValidator(LARGEST)], help_text="Empty says nothing; 0 is an empty envelope."
    )
    limit = models.PositiveBigIntegerField(
        null=True, blank=True, validators=[MaxValueValidator(LARGEST)], help_text="Empty is no limit; 0 is a real zero."
    )
    weight = models.PositiveBigIntegerField(default=1, validators=[MaxValueValidator(LARGEST)])
    lend = models.BooleanField(default=True, help_text="May others use what lies idle?")
    lowered_at = models.DateTimeField(null=True, blank=True, editable=False)
    history = HistoricalRecords()
    objects = QuotaQuerySet.as_manager()

    class Meta:
        verbose_name = "quota"
        ordering = ["scope__name", "target", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["scope", "pool", "target"],
                name="quota_once",
                violation_error_message="This scope has a quota for that already.",
            ),
            models.CheckConstraint(
                condition=Q(guarantee__isnull=True) | Q(limit__isnull=True) | Q(limit__gte=F("guarantee")),
                name="quota_limit_covers_guarantee",
                violation_error_message="The limit is below the guarantee.",
            ),
            models.CheckConstraint(
                condition=~Q(target__startswith="model:") | Q(guarantee__isnull=True),
                name="quota_model_limit_only",
                violation_error_message="A model: row takes a limit only.",
            ),
            models.CheckConstraint(
                condition=(Q(guarantee__isnull=True) | Q(guarantee__range=(0, LARGEST)))
                & (Q(limit__isnull=True) | Q(limit__range=(0, LARGEST)))
                & Q(weight__range=(0, LARGEST)),
                name="quota_whole_numbers",
                violation_error_message="Quotas are whole numbers from 0 to 10^12.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} · {self.target}"


class Membership(models.Model):
    """A person's role in a scope and all below it."""

    class Role(models.TextChoices):
        VIEWER = "viewer"
        MANAGER = "manager"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    scope = models.ForeignKey(Scope, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)
    history = HistoricalRecords()
    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "scope"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.scope}"


class Revision(models.Model):
    """One row. Each edit of scopes or quotas locks it and raises its number, so that edits are one after another."""

    number = models.PositiveBigIntegerField(default=0)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="revision_one_row")]

    def __str__(self) -> str:
        return str(self.number)
