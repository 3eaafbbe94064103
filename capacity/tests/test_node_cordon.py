"""A node's page; cordoning it and opening it again, with what would move before: by page, API and command."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from capacity.briefings import evacuate
from capacity.models import Node, Pass, Replica
from capacity.ports import DeviceReport, NodeReport
from capacity.snapshot import build
from capacity.tests.fleet import Fleet
from capacity.tests.pages import HOSTILE, make_fleet, make_person
from capacity.views import node_page as pages

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(client):
    person = make_person("oscar", is_operator=True)
    client.force_login(person)
    return person


@pytest.fixture
def live(monkeypatch) -> Fleet:
    """Two hosts and a model of two replicas, both on the first, each busy: cordoning it moves both."""
    fleet = Fleet(min_replicas=2)
    fleet.passes(3)
    Node.objects.create(name="n2", pool=fleet.pool, resources={"sim": 8})
    fleet.fake.add_node("n2", "p", {"sim": 8})
    fleet.passes(1)
    monkeypatch.setattr(evacuate, "deps", lambda: fleet.deps)
    # the fleet in memory has a clock of its own
    monkeypatch.setattr(evacuate, "build", lambda deps, lease, *_: build(deps, lease, fleet.fake.now(), fleet.fake.now()))
    return fleet


def api(person: Any) -> APIClient:
    client = APIClient()
    client.force_authenticate(person)
    return client


def command(*arguments: str, **options: Any) -> str:
    out = io.StringIO()
    call_command("node_cordon", *arguments, stdout=out, **options)
    return out.getvalue()


# --- the page --------------------------------------------------------------------------------------------------------
@pytest.fixture
def small() -> tuple[Any, Node]:
    fleet = make_fleet("m0")
    node = fleet.pool.nodes.get()
    fleet.model.replicas.update(nodes=[node.name])
    return fleet, node


def test_a_node_shows_units_replicas_and_what_is_wrong_there(client, operator, small):
    _, node = small
    Pass.objects.update(problems=[{"code": "unknown_product", "subject": f"node:{node.name}", "detail": "has “GTX 980”"}])
    response = client.get(reverse("node", args=[node.name]))
    assert [(row.name, row.offered, row.held, row.free) for row in response.context["classes"]] == [("sim", 8, 2, 6)]
    page = response.content.decode()
    assert "has “GTX 980”" in page and "m0/r0" in page and "none is at hand" in page


def test_a_device_is_ours_foreign_or_nobodys_and_unknown_memory_is_unknown(client, operator, small, monkeypatch):
    fleet, node = small
    Replica.objects.filter(name="m0/r0").update(devices=["GPU-0"])
    report = NodeReport(
        node=node.name,
        pool=fleet.pool.name,
        at=timezone.now(),
        resources={"gpu/l4": 2},
        foreign_devices={"GPU-1": "gpu/l4"},
        devices=tuple(DeviceReport(id=f"GPU-{n}", resource="gpu/l4", product="NVIDIA L4") for n in range(3)),
        unknown_products=("GTX 980",),
        shown={"cores": "32", "memory_gib": "251"},
    )
    monkeypatch.setattr(pages, "read_report", lambda *_: report)
    response = client.get(reverse("node", args=[node.name]))
    assert [(row.replica, row.is_foreign) for row in response.context["devices"]] == [("m0/r0", False), ("", True), ("", False)]
    page = response.content.decode()
    assert "unknown" in page and "251 GiB" in page and "GTX 980" in page


def test_hardware_is_shown_to_operators_alone(client, small):
    _, node = small
    client.force_login(make_person("vera"))
    for url in (reverse("node", args=[node.name]), reverse("node_cordon", args=[node.name])):
        assert client.get(url).status_code == 404
        assert client.post(url, {"schedulable": "false", "reason": "r"}).status_code in {404, 405}
    assert api(make_person("victor")).post(f"/api/v1/nodes/{node.name}/cordon", {"schedulable": False}, "json").status_code == 404
    assert Node.objects.get().schedulable


def test_a_name_that_is_a_script_is_text(client, operator):
    make_fleet("m1")
    node = Node.objects.get()
    Node.objects.update(name=HOSTILE)
    for url in (reverse("node", args=[HOSTILE]), reverse("node_cordon", args=[HOSTILE]), reverse("nodes")):
        assert "<img" not in client.get(url).content.decode()
    assert node.pk


def test_a_node_that_ends_in_the_verb_has_its_page(client, operator, small):
    _, node = small
    Node.objects.filter(pk=node.pk).update(name="rack/cordon")
    assert client.get("/nodes/rack/cordon/").context["node"].name == "rack/cordon"


# --- the preview and the act -----------------------------------------------------------------------------------------
def test_before_confirming_the_page_says_what_moves_and_when_it_was_read(client, operator, live):
    response = client.get(reverse("node_cordon", args=["n1"]))
    page = response.content.decode()
    assert "2 replicas would move, 0 would go without a replacement, 0 would stay." in page
    assert "moves to n2" in page and "the last pass was" in page and "no-store" in response["Cache-Control"]
    assert Node.objects.get(name="n1").schedulable


def test_the_page_cordons_and_opens_with_a_reason(client, operator, live):
    url = reverse("node_cordon", args=["n1"])
    assert client.post(url, {"schedulable": "false"}).status_code == 400
    assert Node.objects.get(name="n1").schedulable
    assert client.post(url, {"schedulable": "false", "reason": "fan"}).url == reverse("node", args=["n1"])
    node = Node.objects.get(name="n1")
    assert not node.schedulable
    assert (node.history.first().history_change_reason, node.history.first().history_user) == ("fan", operator)
    assert "would be free for new replicas" in client.get(url).content.decode()
    client.post(url, {"schedulable": "true", "reason": "mended"})
    assert Node.objects.get(name="n1").schedulable


def test_the_api_previews_without_a_reason_and_acts_with_one(operator, live):
    call = "/api/v1/nodes/n1/cordon"
    found = api(operator).post(call, {"schedulable": False, "preview": True}, "json").json()
    assert (found["schedulable"], found["evacuation"]["moving"], found["evacuation"]["freed"]) == (True, 2, {"sim": 2})
    assert {move["fate"] for move in found["evacuation"]["moves"]} == {"moves"}
    assert Node.objects.get(name="n1").schedulable
    assert api(operator).post(call, {"schedulable": False}, "json").status_code == 400
    assert api(operator).post(call, {"schedulable": False, "reason": "fan"}, "json").json() == {
        "node": "n1",
        "schedulable": False,
    }


def test_the_command_previews_and_acts(live):
    said = command("n1", preview=True).splitlines()
    assert said[0] == "2 replicas would move, 0 would go without a replacement, 0 would stay."
    assert all("moves to n2" in line for line in said[-2:])
    assert json.loads(command("n1", preview=True, as_json=True))["evacuation"]["is_settled"]
    assert Node.objects.get(name="n1").schedulable
    with pytest.raises(CommandError, match="Say why"):
        command("n1")
    assert command("n1", reason="fan").startswith("n1 is cordoned")
    assert "free for new replicas" in command("n1", preview=True, open=True)
    assert command("n1", open=True, reason="mended") == "n1 is open.\n"
    with pytest.raises(CommandError, match="There is no node"):
        command("none", preview=True)


def test_what_the_preview_says_is_what_the_passes_do(live):
    found = evacuate.facts_of(Node.objects.get(name="n1"), False, live.fake.now()).found
    assert found is not None and found.moving == 2
    command("n1", reason="fan")
    live.passes(40)
    assert list(Replica.objects.filter(gone_at=None).values_list("nodes", flat=True)) == [["n2"], ["n2"]]


def test_without_hosts_nobody_can_tell(client, operator, live):
    live.fake.away = True
    assert "cannot be read" in client.get(reverse("node_cordon", args=["n1"])).content.decode()
