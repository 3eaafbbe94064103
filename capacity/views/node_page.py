"""One host: what it offers and holds, its devices, what is wrong there; and cordoning it, with what would move before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers

from quotas.services.rows import LONGEST_REASON

from .. import services
from ..briefings.evacuate import facts_of, sentence_of, sentences_of
from ..domain.evacuation import Evacuation
from ..drivers.process import read_report
from ..models import Backoff, Node, Replica
from ..ports import DeviceReport, NodeReport
from ..services.rules import on_node
from ..store import redis_client
from .frame import Frame, frame_of
from .live import live
from .nodes import row_of
from .places import unheard
from .replica_rows import tests_of
from .words import title

DEVICES_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """A class on this host; `foreign` units are not among the offered ones."""

    name: str
    offered: int
    held: int
    foreign: int

    @property
    def free(self) -> int:
        return max(0, self.offered - self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """A device and who has it: a replica of ours, a stranger, or nobody."""

    device: DeviceReport
    replica: str
    is_foreign: bool


def visible_node(request: HttpRequest, name: str) -> Node:
    """Hardware belongs to no scope: those who see everything see it."""
    if not request.user.sees_everything:  # type: ignore[union-attr]
        raise Http404
    return get_object_or_404(Node.objects.select_related("pool__settings", "pool__lease"), name=name)


@live
def node_page(request: HttpRequest, name: str) -> HttpResponse:
    frame = frame_of(request)
    node = visible_node(request, name)
    report = read_report(redis_client(), node.pool.name, node.name)
    replicas = replicas_on(node)
    resting = Backoff.objects.filter(node=node, until__gt=frame.now).select_related("profile__model")
    context = {
        "node": node,
        "row": row_of(node, frame.now, {}),
        "report": report,
        "classes": classes(node, replicas),
        "replicas": replicas,
        "unheard": unheard(replicas, frame.now),
        "tests": tests_of(replicas, frame.now),
        "devices": devices(report, replicas)[:DEVICES_SHOWN],
        "unknown_products": report.unknown_products if report else (),
        "problems": list(problems(node, frame, replicas)),
        "backoffs": resting.order_by("until", "id"),
        "place": "nodes",
    }
    return render(request, "pages/node.html", context)


def replicas_on(node: Node) -> list[Replica]:
    found = Replica.objects.filter(pk__in=[row.pk for row in on_node(node)])
    return list(found.select_related("model", "profile").order_by("name"))


def classes(node: Node, replicas: Sequence[Replica]) -> list[ClassRow]:
    held: dict[str, int] = {}
    for replica in replicas:
        held[replica.profile.resource] = held.get(replica.profile.resource, 0) + replica.units
    names = sorted({*node.resources, *node.foreign, *held})
    return [
        ClassRow(
            name=name, offered=int(node.resources.get(name, 0)), held=held.get(name, 0), foreign=int(node.foreign.get(name, 0))
        )
        for name in names
    ]


def devices(report: NodeReport | None, replicas: Sequence[Replica]) -> list[DeviceRow]:
    if report is None:
        return []
    given = {device: replica.name for replica in replicas for device in replica.devices}
    return [
        DeviceRow(device=device, replica=given.get(device.id, ""), is_foreign=device.id in report.foreign_devices)
        for device in report.devices
    ]


def problems(node: Node, frame: Frame, replicas: Sequence[Replica]) -> Iterator[dict[str, str]]:
    """What the newest pass of its pool named of this node and of what runs there."""
    subjects = {f"node:{node.name}", *(f"replica:{replica.name}" for replica in replicas)}
    for row in frame.passes:
        for problem in row.problems if row.pool_id == node.pool_id else ():
            if isinstance(problem, dict) and problem.get("subject") in subjects:
                kind, _, name = str(problem["subject"]).partition(":")
                code = str(problem.get("code", ""))
                yield {"code": code, "title": title(code), "kind": kind, "name": name, "detail": str(problem.get("detail", ""))}


# --- cordon and open -------------------------------------------------------------------------------------------------
class CordonForm(forms.Form):
    schedulable = forms.TypedChoiceField(choices=[("true", "open"), ("false", "cordon")], coerce=lambda text: text == "true")
    reason = forms.CharField(max_length=LONGEST_REASON, error_messages={"required": "Say why: it is kept in the history."})


def cordon(request: HttpRequest, name: str) -> HttpResponse:
    """GET says what would move; POST does it. A node that is itself named `…/cordon` has this address for its page."""
    if request.method != "POST" and Node.objects.filter(name=f"{name}/cordon").exists():
        return node_page(request, f"{name}/cordon")
    node = visible_node(request, name)
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators cordon nodes.")
    form = CordonForm(request.POST if request.method == "POST" else None)
    if form.is_valid() and done(request, node, form):
        return redirect("node", node.name)
    return shown(request, node, form)


def done(request: HttpRequest, node: Node, form: CordonForm) -> bool:
    """Whether the service took it; its refusals stand at the form."""
    before, schedulable = node.schedulable, form.cleaned_data["schedulable"]
    try:
        services.node_cordon(node, schedulable, actor=request.user, reason=form.cleaned_data["reason"])  # type: ignore[arg-type]
    except ValidationError as error:
        node.schedulable = before
        form.add_error(None, error.messages)  # type: ignore[arg-type]
        return False
    words = "is open" if schedulable else "is cordoned; what runs there is moved away, one a model and pass"
    messages.success(request, f"{node.name} {words}.")
    return True


def shown(request: HttpRequest, node: Node, form: CordonForm) -> HttpResponse:
    facts = facts_of(node, not node.schedulable, timezone.now())
    found = facts.found
    moves = [(move, sentence_of(move)) for move in found.moves] if isinstance(found, Evacuation) else []
    context: dict[str, Any] = {
        "node": node,
        "facts": facts,
        "sentences": sentences_of(facts),
        "moves": moves,
        "opens": not node.schedulable,
        "form": form,
        "longest": LONGEST_REASON,
        "place": "nodes",
    }
    response = render(request, "pages/cordon.html", context, status=400 if form.errors else 200)
    add_never_cache_headers(response)
    return response
