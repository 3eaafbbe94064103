"""Rules across rows: what is refused, what is warned of, and what a save completes. Called by `quotas.services.check`."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from quotas.models import CapacityQuota, Pool, Scope
from quotas.services.rows import Findings, actor_of, delete_rule_for, listed, rule_for

from ..domain.products import canonical_class
from ..models import LanguageModel, Node, PoolSettings, Profile, Replica
from ..observation.hearing import heard
from ..observation.served_names import owners, plain
from .floors import floor_units

PRICE = ("resource", "units", "hosts")
REPORT_SECONDS = 5
"""How often a host reports at least (`capacity.node.agent`)."""


def present(**where: object) -> QuerySet[Replica]:
    return Replica.objects.filter(gone_at__isnull=True, **where)


# --- saves --------------------------------------------------------------------------------------------------------
@rule_for(Profile)
def keep_the_price_of_what_runs(profile: Profile, stored: Profile | None, findings: Findings) -> None:
    if stored is None:
        return
    if profile.model_id != stored.model_id:
        findings.refuse("model", f"A profile stays with its model ({stored.model}); make a new one for another.")
    changed = [field for field in PRICE if getattr(profile, field) != getattr(stored, field)]
    running = present(profile=stored).count() if changed else 0
    for field in changed if running else []:
        findings.refuse(
            field,
            f"Replicas of {stored} exist ({running}) with {stored.units} × {stored.resource} on each of {stored.hosts} host(s): "
            "make a new profile and retire this one.",
        )


@rule_for(LanguageModel)
def keep_the_pool_of_what_runs(model: LanguageModel, stored: LanguageModel | None, findings: Findings) -> None:
    if stored is None or model.pool_id == stored.pool_id:
        return
    running = present(model=stored).count()
    registered = and_registered(present(model=stored))
    if running:
        findings.refuse(
            "pool", f"Replicas run in {stored.pool} ({running}): set max_replicas to 0 and wait until they are gone.{registered}"
        )


@rule_for(LanguageModel)
def serve_under_names_of_its_own(model: LanguageModel, stored: LanguageModel | None, findings: Findings) -> None:
    """A request names one model. What is listed twice, or is the model's own name, is left out."""
    others = LanguageModel.objects.filter(pool_id=model.pool_id).exclude(pk=model.pk)
    taken = owners((name, plain(aliases)) for name, aliases in others.values_list("name", "served_names"))
    if model.name in taken:
        findings.refuse("name", f"{taken[model.name]} serves under the name “{model.name}”: take it off there first.")
    model.served_names = list(dict.fromkeys(alias for alias in model.served_names if alias != model.name))
    for alias in model.served_names:
        if alias in taken:
            how = "is a model" if taken[alias] == alias else f"is a name of {taken[alias]}"
            findings.refuse("served_names", f"“{alias}” {how} of {model.pool}: a request by it could mean either.")


@rule_for(Node)
def keep_the_place_of_what_runs(node: Node, stored: Node | None, findings: Findings) -> None:
    if stored is None:
        return
    for field in ("name", "pool_id"):
        if getattr(node, field) != getattr(stored, field) and replicas_on(stored):
            registered = and_registered(on_node(stored))
            sentence = f"Replicas run on {stored}: cordon it and wait until they have moved.{registered}"
            findings.refuse(field.removesuffix("_id"), sentence)


@rule_for(Node)
def keep_the_name_that_the_host_reports(node: Node, stored: Node | None, findings: Findings) -> None:
    if stored is not None and node.name != stored.name and stored.reported_at is not None:
        findings.refuse("name", f"The host reports as {stored}: start its node worker under the new name, then delete this node.")


@rule_for(Pool)
def keep_the_name_that_hosts_report_to(pool: Pool, stored: Pool | None, findings: Findings) -> None:
    """Orders and reports go by the pool's name, which each host was given at its start."""
    if stored is None or pool.name == stored.name:
        return
    hosts = list(Node.objects.filter(pool=stored, reported_at__isnull=False).values_list("name", flat=True))
    if hosts:
        findings.refuse(
            "name", f"{listed(hosts)} report to {stored} by its name: stop their node workers and delete the nodes first."
        )


@rule_for(Node)
def keep_what_the_host_reports(node: Node, stored: Node | None, findings: Findings) -> None:
    if stored is None or stored.reported_at is None or node.resources == stored.resources:
        return
    # a report may have come between reading and saving: it is never written over
    if node.reported_at == stored.reported_at:
        findings.warn(f"{stored} reports its own resources; the typed ones are left out.")
    node.resources = stored.resources


@rule_for(PoolSettings)
def let_hosts_report_twice(row: PoolSettings, stored: PoolSettings | None, findings: Findings) -> None:
    """Below that every host would be silent between two of its reports, and no room be seen anywhere."""
    if row.node_silent_seconds <= 2 * REPORT_SECONDS and (
        stored is None or stored.node_silent_seconds != row.node_silent_seconds
    ):
        findings.refuse(
            "node_silent_seconds", f"Hosts report each {REPORT_SECONDS} s: give them more than {2 * REPORT_SECONDS} s."
        )


@rule_for(PoolSettings)
def name_the_server_that_loads_come_from(row: PoolSettings, stored: PoolSettings | None, findings: Findings) -> None:
    """Without one every load of the pool would be unknown at once."""
    chosen = row.load_source == PoolSettings.LoadSource.PROMETHEUS and (stored is None or stored.load_source != row.load_source)
    if chosen and not settings.PROMETHEUS_URL:
        findings.refuse("load_source", "LLMGW_PROMETHEUS_URL names no server: set it and start anew, then choose this.")


@rule_for(Node, Profile, CapacityQuota)
def warn_of_other_names_of_products(
    row: Node | Profile | CapacityQuota, stored: Node | Profile | CapacityQuota | None, findings: Findings
) -> None:
    for name in sorted(typed_classes(row) - (typed_classes(stored) if stored else set())):
        if canonical := canonical_class(name):
            findings.warn(f"Hosts report that product as {canonical}: what is written as {name} is another class to the plan.")


def typed_classes(row: Node | Profile | CapacityQuota) -> set[str]:
    """The resource classes that a person wrote into the row."""
    if isinstance(row, Node):
        return set(row.resources)
    return {row.resource if isinstance(row, Profile) else row.target}


@rule_for(CapacityQuota)
def know_the_model(quota: CapacityQuota, stored: CapacityQuota | None, findings: Findings) -> None:
    if not quota.target.startswith("model:"):
        return
    name = quota.target.removeprefix("model:")
    models, actor = LanguageModel.objects.filter(name=name, pool_id=quota.pool_id), actor_of(quota)
    # whoever does not see a model is told what he would be told if there were none
    if not (models.visible_to(actor) if actor else models).exists():
        findings.refuse("target", f"The pool {quota.pool} has no model “{name}”.")


@rule_for(CapacityQuota)
def warn_of_guarantees_beyond_capacity(quota: CapacityQuota, stored: CapacityQuota | None, findings: Findings) -> None:
    if not quota.guarantee:
        return
    offered = [node.resources.get(quota.target) for node in Node.objects.filter(pool_id=quota.pool_id)]
    known = [units for units in offered if isinstance(units, int)]
    taken = Profile.objects.filter(model__pool_id=quota.pool_id, resource=quota.target).exists()
    if not known and not taken:
        findings.warn(f"No node of {quota.pool} offers {quota.target} and no profile takes it: the guarantee is for nothing yet.")
    elif quota.guarantee > sum(known):
        actor = actor_of(quota)
        has = f"{sum(known)} units" if actor is None or actor.sees_everything else "units"
        findings.warn(f"The guarantee of {quota.guarantee} is beyond the {has} of {quota.target} in {quota.pool}.")


@rule_for(CapacityQuota)
def warn_of_floors_beyond_this(quota: CapacityQuota, stored: CapacityQuota | None, findings: Findings) -> None:
    if quota.scope_id is not None and quota.guarantee is not None:
        models = LanguageModel.objects.filter(scope_id=quota.scope_id, pool_id=quota.pool_id)
        _warn_of_floors(models, quota, findings)


@rule_for(LanguageModel)
def warn_of_floors_beyond_guarantees(model: LanguageModel, stored: LanguageModel | None, findings: Findings) -> None:
    if model.scope_id is None:
        return
    others = LanguageModel.objects.filter(scope_id=model.scope_id, pool_id=model.pool_id).exclude(pk=model.pk)
    quotas = CapacityQuota.objects.filter(scope_id=model.scope_id, pool_id=model.pool_id, guarantee__isnull=False)
    for quota in quotas.select_related("scope"):
        _warn_of_floors([*others, model], quota, findings)


def _warn_of_floors(models: Iterable[LanguageModel], quota: CapacityQuota, findings: Findings) -> None:
    units = floor_units(models, quota.target)
    if quota.guarantee is not None and units > quota.guarantee:
        findings.warn(
            f"The min_replicas of the models of {quota.scope} take {units} units of {quota.target}, beyond its guarantee of "
            f"{quota.guarantee}: they may have to wait for room, and floors are never reclaimed."
        )


# --- deletes ------------------------------------------------------------------------------------------------------
@delete_rule_for(Scope)
def refuse_with_models(scope: Scope, findings: Findings) -> None:
    owned = list(LanguageModel.objects.filter(scope=scope).values_list("name", flat=True))
    if owned:
        findings.refuse("__all__", f"{scope} owns models: {listed(owned)}. Give them to other scopes first.")


@delete_rule_for(LanguageModel)
def refuse_with_replicas(model: LanguageModel, findings: Findings) -> None:
    running, registered = present(model=model).count(), and_registered(present(model=model))
    if running:
        findings.refuse(
            "__all__", f"Replicas of {model} run ({running}): set max_replicas to 0 and wait until they are gone.{registered}"
        )


@delete_rule_for(Profile)
def refuse_profile_with_replicas(profile: Profile, findings: Findings) -> None:
    running, registered = present(profile=profile).count(), and_registered(present(profile=profile))
    if running:
        findings.refuse(
            "__all__", f"Replicas of {profile} run ({running}): retire the profile and wait until they are gone.{registered}"
        )


@delete_rule_for(Pool)
def refuse_pool_in_use(pool: Pool, findings: Findings) -> None:
    running, registered = present(pool=pool).count(), and_registered(present(pool=pool))
    if running:
        findings.refuse(
            "__all__", f"Replicas run in {pool} ({running}): set max_replicas of its models to 0 and wait.{registered}"
        )


@delete_rule_for(Node)
def refuse_node_in_use(node: Node, findings: Findings) -> None:
    """Of a host that is lost nothing is waited for; what people registered there they forget themselves."""
    found = on_node(node)
    waited_for = [row.name for row in found if row.is_registered or heard(node, timezone.now()) != "lost"]
    if waited_for:
        sentence = f"{listed(waited_for)} run on {node}: cordon it and wait until they have moved.{and_registered(found)}"
        findings.refuse("__all__", sentence)


def replicas_on(node: Node) -> list[str]:
    return [row.name for row in on_node(node)]


def on_node(node: Node) -> list[Replica]:
    return [row for row in present(pool_id=node.pool_id).only("name", "nodes", "is_registered") if node.name in row.nodes]


def and_registered(found: Iterable[Replica]) -> str:
    """What else is to be done where some of them are never stopped from here."""
    names = [row.name for row in found if row.is_registered]
    return f" Forget what was registered and runs on by itself ({listed(names)}): endpoint_remove." if names else ""
