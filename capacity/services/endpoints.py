"""Engines that were running already: registered, and forgotten again. Neither starts or stops anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.utils import timezone

from quotas.models import User
from quotas.services import check, exclusive, rows, save
from quotas.services.rows import Findings, listed, rule_for
from quotas.validators import validate_name

from ..fleet_scrape import allowed_networks
from ..models import LanguageModel, Node, Replica
from ..replica_names import new_name
from ..sources.address import url_fault
from ..sources.answers import base_url
from ..sources.look import Look, look

UNASKED = "Say why: the reason stands in the history."


def endpoint_add(engine: Replica, *, actor: User | None, reason: str) -> list[str]:
    """Registers a running engine: `engine` is a new row with url, model, profile and nodes, and devices and a name where they are
    known. It is looked at once, before anything is locked. Returns warnings."""
    _require_reason(reason)
    found = _looked_at(engine)
    warnings = save(engine, actor=actor, reason=reason)
    _note_change(engine)
    return [*warnings, *doubts(engine, found)]


def endpoint_preview(engine: Replica) -> tuple[Look, list[str]]:
    """What can be read there, and what registering it would warn of. Refuses what that would refuse; writes nothing."""
    found = _looked_at(engine)
    return found, [*check(engine), *doubts(engine, found)]


def _looked_at(engine: Replica) -> Look:
    engine.url = engine.url.strip().rstrip("/")
    if fault := url_fault(engine.url, allowed_networks()):
        raise ValidationError({"url": fault})
    found = look(engine.url, allowed_networks())
    _complete(engine, timezone.now(), answers=not found.silence)
    return found


def doubts(engine: Replica, found: Look) -> list[str]:
    """What an operator should know of it: nothing of this keeps it from being registered."""
    if found.silence:
        return [f"It does not answer now and counts as unready: {found.silence}"]
    told = [f"Its load is unknown, so nothing of {engine.model} is taken back: {found.unread}"] if found.unread else []
    names = {engine.model.name, *engine.model.served_names}
    if found.serves is not None and not names & set(found.serves):
        serves = listed(list(found.serves)) or "no model"
        told.append(f"It serves {serves}, not {engine.model}: requests that name it would fail.")
    return told


def endpoint_remove(engine: Replica, *, actor: User | None, reason: str) -> None:
    """Forgets a registered engine, which runs on. Its row stays as history."""
    _require_reason(reason)
    with exclusive():
        stored = Replica.objects.get(pk=engine.pk)
        if fault := why_not_forgotten(stored):
            raise ValidationError(fault)
        stored.state, stored.url, stored.intent = Replica.State.GONE, "", ""
        stored.gone_at = stored.since = timezone.now()
        stored.message = f"Forgotten: {reason}"
        rows.write(stored, actor=actor, reason=reason)
    _note_change(stored)


def why_not_forgotten(engine: Replica) -> str:
    if not engine.is_registered:
        return f"{engine} was started from here: it is drained when it is not needed, not forgotten."
    return f"{engine} is forgotten already." if engine.gone_at else ""


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise ValidationError({"reason": UNASKED})


def _complete(engine: Replica, now: datetime, *, answers: bool) -> None:
    engine.is_registered, engine.removable = True, False
    engine.state = Replica.State.READY if answers else Replica.State.UNREADY
    engine.since = engine.created_at = engine.seen_at = now
    engine.ready_at = now if answers else None
    if engine.model_id is not None:
        engine.pool_id = engine.model.pool_id
        engine.name = engine.name or new_name(engine.model.name)
    if engine.profile_id is not None:
        engine.units = engine.profile.units


def _note_change(engine: Replica) -> None:
    """As an add or a removal would: what stays is watched for a window before one of ours is taken back."""
    LanguageModel.objects.filter(pk=engine.model_id).update(last_change_at=timezone.now())


# --- rules --------------------------------------------------------------------------------------------------------
@rule_for(Replica)
def registered_as_it_runs(engine: Replica, stored: Replica | None, findings: Findings) -> None:
    if stored is not None:
        return
    try:
        validate_name(engine.name)
    except ValidationError as error:
        findings.refuse("name", error.messages[0])
    if engine.profile.model_id != engine.model_id:
        findings.refuse("profile", f"{engine.profile.name} is a profile of {engine.profile.model}, not of {engine.model}.")
    elif _are_names(engine, findings):
        _check_place(engine, findings)
        _check_devices(engine, findings)


def _are_names(engine: Replica, findings: Findings) -> bool:
    for field in ("nodes", "devices"):
        values = getattr(engine, field)
        if not all(isinstance(name, str) and name for name in values) or len(set(values)) < len(values):
            findings.refuse(field, "Write names, each once.")
    return not findings.refusals


@rule_for(Replica)
def registered_once(engine: Replica, stored: Replica | None, findings: Findings) -> None:
    if stored is not None:
        return
    place = place_of(engine.url)
    for other in Replica.objects.filter(gone_at__isnull=True).exclude(url="").only("name", "url", "is_registered"):
        if place_of(other.url) == place:
            what = "is registered" if other.is_registered else "was started from here and runs"
            findings.refuse("url", f"{other} {what} at this address already.")


def place_of(url: str) -> tuple[str, str | None, int | None, str]:
    """What two spellings of one address have in common."""
    parts = urlsplit(base_url(url))
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme), parts.path


def _check_place(engine: Replica, findings: Findings) -> None:
    profile, pool = engine.profile, engine.model.pool
    if len(engine.nodes) != profile.hosts:
        findings.refuse("nodes", f"{profile.name} runs on {profile.hosts} host(s), and {len(engine.nodes)} are named.")
    found = {node.name: node for node in Node.objects.filter(pool=pool, name__in=engine.nodes)}
    missing = sorted(set(engine.nodes) - set(found))
    if missing:
        findings.refuse("nodes", f"The pool {pool} has no node {listed(missing)}: start its worker, or write it down first.")
        return
    for node in found.values():
        if sentence := _too_small(engine, node):
            findings.warn(sentence)


def _too_small(engine: Replica, node: Node) -> str:
    """Whether the node has what the engine is said to hold, beside what others hold there."""
    resource, units = engine.profile.resource, engine.profile.units
    there = int(node.resources.get(resource, 0)) + int(node.foreign.get(resource, 0))
    others = Replica.objects.filter(pool=node.pool, gone_at__isnull=True, profile__resource=resource)
    held = sum(taken for names, taken in others.values_list("nodes", "units") if node.name in names)
    if units + held <= there:
        return ""
    return f"{node} has {there} of {resource} and {held} are held already: with these {units} more are held than it has."


def _check_devices(engine: Replica, findings: Findings) -> None:
    if not engine.devices:
        return
    units = engine.profile.units * engine.profile.hosts
    if len(engine.devices) != units:
        findings.refuse("devices", f"{engine.profile.name} takes {units} device(s), and {len(engine.devices)} are named.")
    for other, device in _taken(engine):
        findings.refuse("devices", f"{device} is held by {other}.")
    nodes = Node.objects.filter(pool_id=engine.model.pool_id, name__in=engine.nodes)
    seen = {device: kind for node in nodes for device, kind in node.foreign_devices.items()}
    unseen = sorted(device for device in engine.devices if seen.get(device) != engine.profile.resource)
    if seen and unseen:
        findings.warn(f"{listed(engine.nodes)} sees no foreign process on {listed(unseen)} of {engine.profile.resource}.")


def _taken(engine: Replica) -> Iterator[tuple[str, str]]:
    wanted = Counter(engine.devices)
    others = Replica.objects.filter(pool_id=engine.model.pool_id, gone_at__isnull=True).exclude(devices=[])
    for name, nodes, devices in others.values_list("name", "nodes", "devices"):
        if set(nodes) & set(engine.nodes):
            yield from ((name, device) for device in devices if device in wanted)
