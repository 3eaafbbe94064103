"""Who sees and does what: a member sees his subtree and no trace of others', an operator runs things, an admin all."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from knox.models import AuthToken
from rest_framework.test import APIClient

from capacity.models import Action, Decision, Pass, Replica, Sample, Slo
from capacity.tests.api_people import member, person
from capacity.tests.factories import make_measurement, make_model, make_node, make_pool, make_profile, make_scope
from quotas.models import CapacityQuota, Scope, User

pytestmark = pytest.mark.django_db
LISTS = [
    *("scopes", "quotas", "pools", "nodes", "models", "profiles", "measurements", "slos"),
    *("replicas", "decisions", "actions", "passes"),
]


def tenant(word, root):
    """A scope with a row of each kind, all of whose names have the word in them."""
    pool = make_pool(f"{word}-pool")
    scope = make_scope(f"{word}-scope", root)
    slo = Slo.objects.create(name=f"{word}-slo")
    model = make_model(f"{word}-model", pool=pool, scope=scope, slo=slo)
    profile = make_profile(model, f"{word}-profile")
    node = make_node(f"{word}-node", pool=pool)
    of_model, now = {"pool": pool, "model": model}, timezone.now()
    decision = Decision.objects.create(**of_model, at=now, seen_until=now, outcome="hold", reason="steady", why=f"{word} is well")
    CapacityQuota.objects.create(scope=scope, pool=pool, target="gpu", limit=4)
    replica = Replica.objects.create(name=f"{word}-replica", profile=profile, url="http://u:secret@h:1/v1", **of_model)
    action = Action.objects.create(decision=decision, op="start", reason="x", generation=1, replica_name=replica.name, **of_model)
    Sample.objects.create(model=model, at=now)
    return {
        "scopes": scope.name,
        "quotas": scope.quotas.get().pk,
        "pools": pool.name,
        "nodes": node.name,
        "models": model.name,
        "profiles": profile.pk,
        "measurements": make_measurement(profile, note=word).pk,
        "slos": slo.name,
        "replicas": replica.name,
        "decisions": decision.pk,
        "actions": action.pk,
        "passes": Pass.objects.create(pool=pool, at=now, generation=1).pk,
    }


@pytest.fixture
def rows():
    root = make_scope("root")
    return {"alpha": tenant("alpha", root), "beta": tenant("beta", root)}


@pytest.fixture
def alice(rows):
    return member("alice", Scope.objects.get(name="alpha-scope"), "manager")


HIDDEN = {"nodes", "passes"}


class TestMembers:
    @pytest.mark.parametrize("kind", LISTS)
    def test_a_list_has_ones_own_and_no_trace_of_others(self, alice, rows, kind):
        answer = alice.get(f"/api/v1/{kind}")
        assert answer.status_code == 200
        assert answer.json()["count"] == (0 if kind in HIDDEN else 1)
        assert b"beta" not in answer.content
        assert b"root" not in answer.content

    @pytest.mark.parametrize("kind", LISTS)
    def test_one_s_own_can_be_read_and_a_foreign_row_is_404(self, alice, rows, kind):
        assert alice.get(f"/api/v1/{kind}/{rows['alpha'][kind]}").status_code == (404 if kind in HIDDEN else 200)
        assert alice.get(f"/api/v1/{kind}/{rows['beta'][kind]}").status_code == 404

    @pytest.mark.parametrize("kind", LISTS[:8])
    @pytest.mark.parametrize("method", ["put", "patch", "delete"])
    def test_a_write_to_a_foreign_row_is_404_and_to_ones_own_403(self, alice, rows, kind, method):
        for word, expected in (("beta", 404), ("alpha", 404 if kind in HIDDEN else 403)):
            answer = getattr(alice, method)(f"/api/v1/{kind}/{rows[word][kind]}", {}, format="json", headers={"If-Match": "*"})
            assert answer.status_code == expected

    @pytest.mark.parametrize("kind", LISTS[:8])
    def test_nothing_is_made(self, rows, kind):
        vera = member("vera", Scope.objects.get(name="alpha-scope"))
        assert vera.post(f"/api/v1/{kind}", {"name": "new"}, format="json").status_code == 403

    @pytest.mark.parametrize("path", ["models/beta-model/pause", "models/beta-model/wake", "nodes/alpha-node/cordon"])
    def test_a_verb_on_what_is_not_ones_own_is_404(self, alice, rows, path):
        assert alice.post(f"/api/v1/{path}", {"reason": "x"}, format="json").status_code == 404

    def test_a_verb_of_operators_is_403_on_one_s_own(self, alice, rows):
        assert alice.post("/api/v1/models/alpha-model/pause", {"reason": "x"}, format="json").status_code == 403
        assert alice.get("/api/v1/snapshot?pool=alpha-pool").status_code == 403
        assert alice.get("/api/v1/snapshot?pool=beta-pool").status_code == 404

    @pytest.mark.parametrize(
        ("kind", "filters"),
        [
            ("models", {"scope": "beta-scope"}),
            ("scopes", {"parent": "root"}),
            ("replicas", {"model": "beta-model"}),
            ("quotas", {"pool": "beta-pool"}),
        ],
    )
    def test_a_filter_finds_no_more_than_the_list(self, alice, rows, kind, filters):
        assert alice.get(f"/api/v1/{kind}", filters).json()["count"] == 0

    def test_samples_of_a_foreign_model_are_404(self, alice, rows):
        assert alice.get("/api/v1/samples?model=alpha-model").json()["count"] == 1
        assert alice.get("/api/v1/samples?model=beta-model").status_code == 404

    def test_a_limit_above_is_told_with_its_scope_and_what_is_kept_for_others_without_a_name(self, alice, rows):
        limited = [
            {"kind": "limit", "scope": "root", "target": "gpu", "limit": 16, "used": 16},
            {"kind": "limit", "scope": "beta-scope", "target": "gpu", "limit": 7, "used": 7},
            {"kind": "guarantee_reserved", "scope": "beta-scope", "units": 4},
            {"kind": "limit", "scope": "alpha-scope", "target": "gpu", "limit": 4, "used": 4},
        ]
        Decision.objects.filter(pk=rows["alpha"]["decisions"]).update(limited_by=limited, why="beta-scope has 4 reserved")
        row = alice.get(f"/api/v1/decisions/{rows['alpha']['decisions']}").json()
        foreign = [{"kind": "limit", "target": "gpu"}, {"kind": "guarantee_reserved", "target": None}]
        assert row["limited_by"] == [limited[0], *foreign, limited[3]]
        assert "beta" not in str(row)

    def test_the_model_that_a_replica_was_given_back_for_is_not_named(self, alice, rows):
        Replica.objects.update(drained_for="beta-model")
        Action.objects.update(for_model="beta-model")
        assert alice.get(f"/api/v1/replicas/{rows['alpha']['replicas']}").json()["drained_for"] == ""
        assert alice.get(f"/api/v1/actions/{rows['alpha']['actions']}").json()["for_model"] == ""

    def test_a_stranger_without_any_scope_sees_empty_lists(self, rows):
        nobody = person("nobody")
        assert {nobody.get(f"/api/v1/{kind}").json()["count"] for kind in LISTS} == {0}


class TestOperators:
    @pytest.mark.parametrize("kind", LISTS)
    def test_he_sees_all(self, rows, kind):
        operator = person("olga", is_operator=True)
        answer = operator.get(f"/api/v1/{kind}")
        assert answer.json()["count"] == (3 if kind == "scopes" else 2)
        assert operator.get(f"/api/v1/{kind}/{rows['beta'][kind]}").status_code == 200
        assert b"secret" not in answer.content

    @pytest.mark.parametrize("kind", ["scopes", "quotas"])
    def test_scopes_and_quotas_are_the_admins(self, rows, kind):
        operator = person("olga", is_operator=True)
        assert operator.post(f"/api/v1/{kind}", {"name": "new"}, format="json").status_code == 403
        path = f"/api/v1/{kind}/{rows['beta'][kind]}"
        assert operator.delete(path, headers={"If-Match": "*"}).status_code == 403


class TestTokens:
    def test_an_expired_one_opens_nothing(self):
        user = User.objects.create(username="late")
        client = APIClient(raise_request_exception=False)
        token, text = AuthToken.objects.create(user)
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
        assert client.get("/api/v1/models").status_code == 200
        token.expiry = timezone.now() - timedelta(seconds=1)
        token.save()
        assert client.get("/api/v1/models").status_code == 401

    def test_one_of_someone_who_may_no_longer_sign_in_opens_nothing(self):
        client = person("gone", is_superuser=True)
        User.objects.update(is_active=False)
        assert client.get("/api/v1/models").status_code == 401

    def test_a_session_writes_only_with_the_csrf_token(self, rows):
        client = APIClient(enforce_csrf_checks=True, raise_request_exception=False)
        client.force_login(User.objects.create(username="ada", is_superuser=True))
        assert client.get("/api/v1/models").status_code == 200
        answer = client.post("/api/v1/models/alpha-model/pause", {"reason": "x"}, format="json")
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "permission_denied")


class TestSamples:
    @pytest.mark.parametrize(
        "query",
        [
            *("", "model=", "model=m&from=yesterday", "model=m&from=2026-01-01T00:00:00Z&to=2026-01-03T00:00:00Z"),
            *("model=m&to=0001-01-01T00:00:00Z", "model=m&from=9999-12-31T23:59:59-12:00", "model=m&size=3"),
            "model=m&from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
        ],
    )
    def test_a_range_that_is_none_or_too_long_is_400(self, query):
        make_model("m")
        assert person("olga", is_operator=True).get(f"/api/v1/samples?{query}").status_code == 400

    def test_the_range_holds_its_ends_in_order(self):
        model, day = make_model("m"), timezone.now().replace(year=2026, month=1, day=1, hour=0, minute=0, second=0, microsecond=0)
        for hours in (25, 24, 1, 0, -1):
            Sample.objects.create(model=model, at=day + timedelta(hours=hours))
        query = {"model": "m", "from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
        rows = person("olga", is_operator=True).get("/api/v1/samples", query).json()["results"]
        hours = ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "2026-01-02T00:00:00Z"]
        assert [row["at"] for row in rows] == hours
