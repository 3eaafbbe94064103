"""A profile is held against the runtime templates that the hosts of its pool have, as far as they have said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quotas.services.rows import Findings, listed, rule_for

from ..models import Node, Profile

Declared = Mapping[str, Mapping[str, bool]]
"""Template → parameter → whether it must be given."""


@rule_for(Profile)
def know_the_template(profile: Profile, stored: Profile | None, findings: Findings) -> None:
    """What no host would start is refused where it is typed; elsewhere (a host's file changed since) it is a warning."""
    hosts = reported_templates(profile)
    if not hosts or not profile.template:
        return
    having = {name: declared[profile.template] for name, declared in hosts.items() if profile.template in declared}
    if not having:
        findings.warn(f"No host has a runtime template “{profile.template}”: {listed(sorted(hosts))} would refuse to start it.")
        return
    retyped = stored is None or (profile.template, profile.parameters) != (stored.template, stored.parameters)
    faults = {name: sorted(faults_of(profile, parameters)) for name, parameters in having.items()}
    for fault in sorted({fault for found in faults.values() for fault in found}):
        where = [name for name, found in faults.items() if fault in found]
        if retyped and len(where) == len(having):
            findings.refuse("parameters", fault)
        else:
            findings.warn(f"On {listed(where)}: {fault} Starts are refused there.")


def reported_templates(profile: Profile) -> dict[str, Declared]:
    """Node → its templates, of those that have said."""
    nodes = Node.objects.filter(pool_id=profile.model.pool_id).order_by("name").values_list("name", "templates")
    return {name: templates for name, templates in nodes if templates}


def faults_of(profile: Profile, parameters: Mapping[str, bool]) -> Iterator[str]:
    given = profile.parameters if isinstance(profile.parameters, dict) else {}
    known = listed(sorted(parameters), at_most=20) or "none"
    for name in sorted(set(given) - set(parameters)):
        yield f"Template {profile.template} has no parameter “{name[:80]}” (it has: {known})."
    for name in sorted(name for name, needed in parameters.items() if needed and name not in given):
        yield f"Template {profile.template} needs the parameter “{name}”."
