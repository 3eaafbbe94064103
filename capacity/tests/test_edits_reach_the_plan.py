"""What an operator types reaches the next pass: states of profiles, and each model's own times, from the form to what is done."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.urls import reverse

from capacity.models import Action, LanguageModel, Profile, Replica
from capacity.snapshot import live_document
from capacity.tests.api_people import person
from capacity.tests.factories import make_measurement, make_profile
from capacity.tests.fleet import Fleet
from capacity.tests.pages import make_person

pytestmark = pytest.mark.django_db


class Remembering(Fleet):
    def __init__(self, **fields) -> None:
        super().__init__(**fields)
        self.orders = []
        do = self.fake.apply

        def remember(order):
            self.orders.append(order)
            return do(order)

        self.fake.apply = remember


def patched(path: str, **fields) -> None:
    """An operator's edit by the API."""
    operator = person(f"op-{Action.objects.count()}-{len(path)}-{len(fields)}", is_operator=True)
    tag = operator.get(path)["ETag"]
    answer = operator.patch(path, json.dumps(fields), content_type="application/json", headers={"if-match": tag})
    assert answer.status_code == 200, answer.content


def state_typed(client, profile: Profile, state: str) -> None:
    """The profile's form in the admin, sent back with another state."""
    client.force_login(make_person(f"op-{state}", is_operator=True, is_staff=True))
    url = reverse("admin:capacity_profile_change", args=[profile.pk])
    form = client.get(url).context["adminform"].form
    given = {name: value for name in form.fields if (value := form[name].value()) is not None}
    for formset in client.get(url).context["inline_admin_formsets"]:
        given |= {f"{formset.formset.prefix}-{key}": 0 for key in ("TOTAL_FORMS", "INITIAL_FORMS")}
    answer = client.post(url, {**given, "state": state, "reason": "a newer engine"})
    assert answer.status_code == 302, answer.context["errors"]


def on(profile: Profile, *states: str) -> list[str]:
    return list(Replica.objects.filter(profile=profile, state__in=states).values_list("name", flat=True))


def a_newer_profile(fleet: Fleet) -> Profile:
    newer = make_profile(fleet.model, "newer", template="simulator", priority=-1)
    make_measurement(newer)
    return newer


def test_a_retired_profile_is_replaced_then_drained_one_after_another(client):
    fleet = Remembering(min_replicas=2)
    newer = a_newer_profile(fleet)
    fleet.a_pass()
    fleet.passes(1)
    assert len(on(fleet.profile, "ready")) == 2
    state_typed(client, fleet.profile, "retire")
    assert {p["name"]: p["state"] for p in live_document("p", fleet.fake.now())["profiles"]}["small"] == "retire"
    least, most = 99, 0
    for _ in range(30):
        fleet.passes(1)
        ready = len(fleet.names("ready"))
        least, most = min(least, ready), max(most, len(fleet.names("ready", "starting", "draining")))
    assert (len(on(newer, "ready")), on(fleet.profile, "ready", "draining", "starting")) == (2, [])
    assert (least, most) == (2, 3), "never fewer than before, and one at a time"
    drains = [order for order in fleet.orders if order.op == "drain"]
    starts = [order for order in fleet.orders if order.op == "start" and order.profile == "newer"]
    assert fleet.orders.index(starts[0]) < fleet.orders.index(drains[0])
    assert set(Action.objects.filter(op="drain").values_list("reason", flat=True)) == {"evacuate"}


def test_a_profile_that_takes_no_new_ones_keeps_what_runs(client):
    fleet = Remembering(min_replicas=1)
    newer = a_newer_profile(fleet)
    fleet.a_pass()
    fleet.passes(1)
    state_typed(client, fleet.profile, "no_new")
    fleet.share(15)
    fleet.passes(6)
    assert (len(on(fleet.profile, "ready")), len(on(newer, "ready"))) == (1, 1)
    Profile.objects.filter(pk=newer.pk).update(state="no_new")
    fleet.share(40)
    fleet.passes(1)
    assert LanguageModel.objects.get().last_decision.reason == "not_active"


def test_a_models_own_window_is_waited_for():
    fleet = Remembering(min_replicas=1, settings={"down_window_seconds": 30})
    patched("/api/v1/models/chat", down_window_seconds=150)
    fleet.a_pass()
    fleet.passes(1)
    fleet.share(15)
    fleet.passes(2)
    fleet.share(0)
    fleet.passes(9)
    assert LanguageModel.objects.get().last_decision.reason == "cooldown"
    assert not [order for order in fleet.orders if order.op == "drain"]
    fleet.passes(5)
    assert len([order for order in fleet.orders if order.op == "drain"]) == 1


def test_a_models_own_share_decides_when_the_rest_is_enough():
    fleet = Remembering(min_replicas=1)
    patched("/api/v1/models/chat", scale_down_fraction="0.30")
    fleet.a_pass()
    fleet.passes(1)
    fleet.share(15)
    fleet.passes(2)
    fleet.share(5)
    fleet.passes(8)
    decision = LanguageModel.objects.get().last_decision
    assert (decision.reason, decision.numbers["removes_below"]) == ("rest_over_threshold", 3)
    patched("/api/v1/models/chat", scale_down_fraction=None)
    fleet.passes(8)
    assert len(fleet.names("ready")) == 1


def test_a_models_own_drain_timeout_goes_with_the_order():
    fleet = Remembering(min_replicas=1, settings={"down_window_seconds": 30, "drain_timeout_seconds": 600})
    patched("/api/v1/models/chat", drain_timeout_seconds=3600)
    fleet.a_pass()
    fleet.passes(1)
    fleet.share(15)
    fleet.passes(2)
    fleet.share(0)
    fleet.passes(6)
    assert {order.drain_timeout_seconds for order in fleet.orders} == {3600}
    assert {order.op for order in fleet.orders} == {"start", "drain"}


def test_a_profiles_own_start_timeout_is_waited_for_and_goes_with_the_order():
    fleet = Remembering(min_replicas=1, settings={"start_timeout_seconds": 60})
    fleet.fake._start_seconds = 10_000
    patched(f"/api/v1/profiles/{fleet.profile.pk}", start_timeout_seconds=300)
    fleet.a_pass()
    fleet.passes(19)
    assert (fleet.orders[0].start_timeout_seconds, {order.op for order in fleet.orders}) == (300, {"start"})
    fleet.passes(2)
    assert Replica.objects.order_by("created_at").first().drain_reason == "start_timeout"
    assert fleet.fake.now() - Replica.objects.order_by("created_at").first().created_at >= timedelta(seconds=300)


def test_a_numeric_parameter_reaches_the_host_as_text_with_a_templates_name_and_no_command():
    fleet = Remembering(min_replicas=1)
    patched(f"/api/v1/profiles/{fleet.profile.pk}", parameters={"capacity": 4})
    fleet.a_pass()
    (order,) = fleet.orders
    assert (order.template, order.parameters) == ("simulator", {"capacity": "4"})
