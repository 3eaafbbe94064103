"""A reader is told which limit binds him, and nothing of others: for whom units are kept, for whom one was given back."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from capacity.domain.phrases import giving
from capacity.models import Decision, Replica
from capacity.tests.api_people import member, person
from capacity.tests.factories import make_scope
from capacity.tests.pages import make_action, make_fleet, make_person
from quotas.models import User

pytestmark = pytest.mark.django_db
LIMIT = {"kind": "limit", "scope": "org", "target": "gpu", "limit": 16, "used": 15}
KEPT = {"kind": "guarantee_reserved", "scope": "rival", "units": 4}
WHY = "More is needed. In the way: the limit of org on gpu is 16 and 15 are used or just granted; 4 are kept for rival."


@pytest.fixture
def fleet() -> Any:
    org = make_scope("org")
    make_scope("rival", org)
    made = make_fleet("llama", scope=make_scope("team", org))
    Decision.objects.update(reason="at_limit", why=WHY, limited_by=[LIMIT, KEPT], outcome="add", count=1)
    make_action(made.decision, made.replicas[0], for_model="rival-model")
    Replica.objects.update(drained_for="rival-model", drain_reason="reclaimed", state="draining")
    return made


def pages(fleet: Any) -> list[str]:
    named = [("model", fleet.model.name), ("model_chart", fleet.model.name), ("replica", fleet.replicas[0].name)]
    addresses = [reverse(name) for name in ("now", "models", "decisions", "tenants")]
    return [*addresses, *(reverse(name, args=[key]) for name, key in named), reverse("decision", args=[fleet.decision.pk])]


def test_a_member_reads_the_limit_that_binds_him_and_no_name_of_others(client: Client, fleet: Any) -> None:
    client.force_login(make_person("vera", fleet.model.scope))
    texts = {page: client.get(page).content.decode() for page in pages(fleet)}
    assert [page for page, text in texts.items() if "rival" in text] == []
    told = texts[reverse("decision", args=[fleet.decision.pk])]
    assert "the limit of org on gpu is 16" in told
    assert "units are kept for a scope that is not yours to see" in told


def test_how_much_a_pass_did_for_all_is_told_to_those_who_see_all(client: Client, fleet: Any) -> None:
    for reader, told in ((make_person("vera", fleet.model.scope), False), (make_person("olga", is_operator=True), True)):
        client.force_login(reader)
        assert ("0 actions" in client.get("/").content.decode()) == told


def test_an_operator_reads_it_all(client: Client, fleet: Any) -> None:
    client.force_login(make_person("olga", is_operator=True))
    assert "4 are kept for rival" in client.get(reverse("decision", args=[fleet.decision.pk])).content.decode()
    assert "rival-model" in client.get(reverse("replica", args=[fleet.replicas[0].name])).content.decode()


@pytest.mark.parametrize(
    ("reason", "why", "limits"),
    [
        ("reclaimed", "It goes to rival-model of rival.", []),
        ("at_limit", "An older version said that rival is in the way.", [KEPT]),
        ("at_limit", "rival", [{"kind": "limit", "scope": "rival"}]),
        ("no_such_reason", "rival", [{"kind": "no_such_kind", "scope": "rival"}]),
    ],
)
def test_a_sentence_that_cannot_be_told_in_part_is_withheld(
    client: Client, fleet: Any, reason: str, why: str, limits: list[Any]
) -> None:
    Decision.objects.update(reason=reason, why=why, limited_by=limits)
    client.force_login(make_person("vera", fleet.model.scope))
    text = client.get(reverse("decision", args=[fleet.decision.pk])).content.decode()
    assert "The reason names what is not yours to see." in text
    assert "rival" not in text


GIVING = giving({"rival-model": ["llama/r0", "llama/r1"], "llama": ["llama/r2"]})


@pytest.mark.parametrize(
    ("reason", "why", "told"),
    [
        (
            "reclaimed",
            f"{GIVING}; the 70 % rule does not hold for that.",
            "Gives back what somebody else is entitled to; the 70 %",
        ),
        ("below_min", f"1 replica live; adding 1 of h100. {GIVING}.", "adding 1 of h100. Gives back what somebody else is"),
        ("reclaimed", f"{giving({'llama': ['llama/r2']})}; so.", "Gives back llama/r2 for llama, which is entitled to it; so."),
        ("reclaimed", "Gives back rival, which is entitled to it.", "Gives back what somebody else is entitled to."),
    ],
)
def test_for_whom_a_replica_is_given_back_is_told_to_those_who_see_the_model(
    client: Client, fleet: Any, reason: str, why: str, told: str
) -> None:
    Decision.objects.update(reason=reason, why=why, limited_by=[])
    client.force_login(make_person("vera", fleet.model.scope))
    text = client.get(reverse("decision", args=[fleet.decision.pk])).content.decode()
    assert told in text
    assert "rival" not in text


def test_a_token_opens_nothing_before_its_owner_has_chosen_a_password(client: Client) -> None:
    ada = person("ada", is_superuser=True)
    assert (ada.get("/api/v1/models").status_code, ada.get("/api/v1/schema/").status_code) == (200, 200)
    User.objects.update(must_change_password=True)
    answer = ada.get("/api/v1/models")
    assert (answer.status_code, "Choose a password" in answer.json()["error"]["message"]) == (403, True)
    assert ada.get("/api/v1/schema/").status_code == 403
    assert ada.get("/metrics", REMOTE_ADDR="192.0.2.1").status_code == 401
    assert person("robot", is_service=True, must_change_password=True).get("/api/v1/models").status_code == 200


def test_an_act_that_is_refused_is_one_line_with_who_and_what(fleet: Any, caplog: Any) -> None:
    caplog.set_level("WARNING", "llmgw_site.middleware")
    vera = person("vera")
    for act in (vera.get, vera.delete):
        assert act("/api/v1/models/llama").status_code == 404
    assert vera.post("/api/v1/scopes", {"name": "new"}, format="json").status_code == 403
    assert vera.post("/api/v1/models/llama/wake").status_code == 404
    mia = member("mia", fleet.model.scope, "manager")
    assert mia.post("/api/v1/scopes", {"name": "new", "parents": ["rival"]}, format="json").status_code == 404
    lines = [record.getMessage() for record in caplog.records if "denied" in record.getMessage()]
    assert [("vera" in line, "mia" in line, "rival" in line) for line in lines] == [(True, False, False)] * 3 + [
        (False, True, True)
    ]
    assert ("DELETE" in lines[0], "/api/v1/models/llama" in lines[0]) == (True, True)
