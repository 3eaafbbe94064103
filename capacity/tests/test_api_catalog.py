"""Rows by the API: made, read, edited without loss, removed."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from capacity.models import LanguageModel, Measurement, Node, PoolSettings, Profile, Replica
from capacity.tests.api_people import person
from capacity.tests.factories import make_measurement, make_model, make_node, make_pool, make_profile, make_scope
from quotas.models import Pool, Scope

pytestmark = pytest.mark.django_db
NAMES = [
    "plain",
    "a/b",
    "a/wake",
    "x/y/cordon",
    "quote\"'s",
    "🐙/🦑",
    '"><img src=x onerror=alert(1)>',
    "50%",
    "a?b#c",
    "🐙" * 200,
]


@pytest.fixture
def operator():
    return person("olga", is_operator=True)


@pytest.fixture
def admin():
    return person("ada", is_superuser=True)


def url(kind, name=None):
    return f"/api/v1/{kind}" if name is None else f"/api/v1/{kind}/{quote(str(name), safe='/')}"


def edit(client, method, path, body):
    tag = client.get(path)["ETag"]
    return getattr(client, method)(path, body, format="json", headers={"If-Match": tag})


@pytest.fixture
def everything(admin):
    """One address of each kind of row, with a row behind it."""
    pool = make_pool("p")
    scope = make_scope("acme/search", make_scope("acme"))
    model = make_model("chat", pool=pool, scope=scope)
    profile = make_profile(model, "h100x2")
    measurement = make_measurement(profile, status="assumed", evidence={"stages": [1]})
    quota = {"scope": "acme", "pool": "p", "target": "gpu/h100", "limit": 8, "guarantee": 2}
    made = admin.post(url("quotas"), quota, format="json").json()
    admin.post(url("slos"), {"name": "fast", "ttft_percentile": 95, "ttft_ms": 500}, format="json")
    make_node("n1", pool=pool)
    return {
        "pools": "p",
        "scopes": "acme/search",
        "models": "chat",
        "nodes": "n1",
        "slos": "fast",
        "profiles": profile.pk,
        "measurements": measurement.pk,
        "quotas": made["id"],
    }


KINDS = ["pools", "scopes", "models", "nodes", "slos", "profiles", "measurements", "quotas"]


class TestNames:
    @pytest.mark.parametrize("name", NAMES)
    def test_a_model_of_any_name_is_made_read_edited_paused_and_removed(self, operator, name):
        make_pool("p")
        made = operator.post(url("models"), {"name": name, "pool": "p"}, format="json")
        assert made.status_code == 201, made.content
        path = url("models", name)
        assert operator.get(path).json()["name"] == name
        assert edit(operator, "patch", path, {"priority": 3}).json()["priority"] == 3
        assert operator.post(f"{path}/wake").status_code == 202
        assert operator.post(f"{path}/pause", {"reason": "why"}, format="json").json()["mode"] == "paused"
        assert edit(operator, "delete", path, None).status_code == 204
        assert not LanguageModel.objects.exists()

    @pytest.mark.parametrize("name", NAMES)
    def test_a_node_of_any_name_is_cordoned(self, operator, name):
        node = make_node(name)
        body = {"schedulable": False, "reason": "fan"}
        assert operator.post(f"{url('nodes', name)}/cordon", body, format="json").status_code == 200
        node.refresh_from_db()
        assert node.schedulable is False
        assert node.history.first().history_change_reason == "fan"
        assert operator.get(url("nodes", name)).json()["name"] == name

    def test_a_verb_read_without_such_a_row_is_405(self, operator):
        make_model("chat")
        assert operator.get(url("models", "chat/wake")).status_code == 405
        assert operator.delete(url("models", "chat/pause")).status_code == 405

    @pytest.mark.parametrize("name", ["", " a", "a ", "a//b", "a/../b", "tab\t", "nul\0", "x" * 201])
    def test_a_name_that_cannot_be_a_path_is_400_at_the_field(self, operator, name):
        make_pool("p")
        answer = operator.post(url("models"), {"name": name, "pool": "p"}, format="json")
        assert answer.status_code == 400
        assert not LanguageModel.objects.exists()


class TestEdits:
    @pytest.mark.parametrize("kind", KINDS)
    def test_what_was_read_can_be_put_back_and_changes_nothing(self, admin, everything, kind):
        path = url(kind, everything[kind])
        before = admin.get(path)
        answer = edit(admin, "put", path, before.json())
        assert answer.status_code == 200, answer.content
        after = admin.get(path)
        assert after.content == before.content
        assert after["ETag"] == before["ETag"] == answer["ETag"]

    @pytest.mark.parametrize("kind", KINDS)
    def test_an_edit_needs_to_say_what_it_has_seen(self, admin, everything, kind):
        path = url(kind, everything[kind])
        before = admin.get(path).content
        for method in ("put", "patch", "delete"):
            answer = getattr(admin, method)(path, {}, format="json")
            assert (answer.status_code, answer.json()["error"]["code"]) == (428, "precondition_required")
            stale = getattr(admin, method)(path, {}, format="json", headers={"If-Match": '"old"'})
            assert stale.status_code == 412
            assert stale.json()["error"]["current"] == json.loads(before)
        assert admin.get(path).content == before

    @pytest.mark.parametrize("kind", KINDS)
    def test_each_row_can_be_removed(self, admin, everything, kind):
        # from the leaves: what others hang on is refused, see the services
        for row in ("measurements", "profiles", "models", "nodes", "quotas", "scopes", "slos", "pools"):
            answer = edit(admin, "delete", url(row, everything[row]) + "?reason=done", None)
            assert answer.status_code == 204, (row, answer.content)
            if row == kind:
                break
        assert admin.get(url(kind, everything[kind])).status_code == 404

    @pytest.mark.parametrize("kind", KINDS)
    def test_an_unknown_field_is_400_and_named(self, admin, everything, kind):
        for answer in (
            admin.post(url(kind), {"nmae": 1}, format="json"),
            edit(admin, "patch", url(kind, everything[kind]), {"nmae": 1}),
        ):
            assert answer.status_code == 400
            assert answer.json()["error"]["fields"]["nmae"] == ["There is no such field."]

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_patch_of_each_field_leaves_the_others_alone(self, admin, everything, kind):
        path = url(kind, everything[kind])
        before = admin.get(path).json()
        for field, value in before.items():
            answer = edit(admin, "patch", path, {field: value})
            assert answer.status_code in {200, 400}, (field, answer.content)
            if answer.status_code == 400:
                assert answer.json()["error"]["fields"] == {field: ["This is read only."]}
            assert admin.get(path).json() == before

    def test_a_patch_changes_its_field_alone(self, operator):
        model = make_model("chat", min_replicas=2, max_replicas=5, priority=7, served_names=["x"])
        answer = edit(operator, "patch", url("models", "chat"), {"max_replicas": None, "reason": "more"})
        assert answer.status_code == 200
        model.refresh_from_db()
        assert (model.min_replicas, model.max_replicas, model.priority, model.served_names) == (2, None, 7, ["x"])
        assert model.history.first().history_change_reason == "more"
        assert model.history.first().history_user == operator.user

    def test_a_put_takes_the_default_for_what_it_leaves_out(self, operator):
        model = make_model("chat", min_replicas=2, max_replicas=5, priority=7)
        assert edit(operator, "put", url("models", "chat"), {"name": "chat", "pool": model.pool.name}).status_code == 200
        model.refresh_from_db()
        assert (model.min_replicas, model.max_replicas, model.priority, model.mode) == (1, None, 0, "advise")

    def test_a_wake_is_nobody_s_edit(self, operator):
        make_model("chat")
        tag = operator.get(url("models", "chat"))["ETag"]
        operator.post(url("models", "chat/wake"))
        answer = operator.patch(url("models", "chat"), {"priority": 1}, format="json", headers={"If-Match": tag})
        assert answer.status_code == 200

    def test_min_above_max_is_400_at_the_field_and_changes_nothing(self, operator):
        model = make_model("chat", min_replicas=2)
        answer = edit(operator, "patch", url("models", "chat"), {"max_replicas": 1})
        assert answer.status_code == 400
        assert "max_replicas" in answer.json()["error"]["fields"]
        model.refresh_from_db()
        assert model.max_replicas is None

    def test_a_model_with_replicas_is_not_removed(self, operator):
        profile = make_profile(make_model("chat"))
        Replica.objects.create(name="r", pool=profile.model.pool, model=profile.model, profile=profile)
        answer = edit(operator, "delete", url("models", "chat"), None)
        assert answer.status_code == 400
        assert "max_replicas" in answer.json()["error"]["message"]
        assert LanguageModel.objects.exists()


class TestMeasurements:
    def test_one_is_made_under_the_names_of_model_and_profile(self, operator):
        profile = make_profile(make_model("a/b"), "h100x2")
        body = {"model": "a/b", "profile": "h100x2", "max_concurrency": 8, "tokens_per_second": "0.1"}
        answer = operator.post(url("measurements"), {**body, "status": "current"}, format="json")
        assert answer.status_code == 201, answer.content
        # typed in: assumed, whatever was asked for, and it says so
        assert answer.json()["status"] == "assumed"
        assert answer.json()["warnings"]
        assert answer.json()["measured_at"].endswith("Z")
        assert answer.json()["tokens_per_second"] == "0.1"
        assert Measurement.objects.get().profile == profile

    def test_an_unknown_profile_is_400_at_the_field(self, operator):
        body = {"model": "a/b", "profile": "none", "max_concurrency": 8, "tokens_per_second": 1}
        answer = operator.post(url("measurements"), body, format="json")
        assert answer.status_code == 400
        assert "profile" in answer.json()["error"]["fields"]


class TestPools:
    def test_an_admin_makes_a_pool_with_settings(self, admin):
        answer = admin.post(url("pools"), {"name": "gpu", "idle_seconds": 900}, format="json")
        assert answer.status_code == 201, answer.content
        settings = PoolSettings.objects.get(pool__name="gpu")
        assert (settings.idle_seconds, settings.reclaim) == (900, False)
        assert settings.pool.lease

    def test_a_pool_with_bad_settings_is_not_made_at_all(self, admin):
        answer = admin.post(url("pools"), {"name": "gpu", "wake_seconds": 900, "idle_seconds": 600}, format="json")
        assert answer.status_code == 400
        assert not Pool.objects.exists()

    def test_an_operator_edits_the_settings_and_makes_no_pool(self, operator):
        make_pool("p")
        assert operator.post(url("pools"), {"name": "q"}, format="json").status_code == 403
        assert edit(operator, "patch", url("pools", "p"), {"max_step_up": 2}).json()["max_step_up"] == 2
        assert edit(operator, "delete", url("pools", "p"), None).status_code == 403


class TestScopes:
    def test_parents_keep_their_order_and_the_funding_one_its_mark(self, admin):
        for name in ("a", "b"):
            assert admin.post(url("scopes"), {"name": name}, format="json").status_code == 201
        answer = admin.post(url("scopes"), {"name": "c", "parents": ["b", "a"], "funding": "a"}, format="json")
        assert answer.json() == {"name": "c", "parents": ["b", "a"], "funding": "a", "warnings": []}
        answer = edit(admin, "patch", url("scopes", "c"), {"parents": ["a", "b"]})
        assert answer.json() == {"name": "c", "parents": ["a", "b"], "funding": "a", "warnings": []}
        assert edit(admin, "patch", url("scopes", "c"), {"name": "d"}).json()["parents"] == ["a", "b"]
        assert edit(admin, "patch", url("scopes", "d"), {"funding": None}).json()["funding"] is None
        assert edit(admin, "put", url("scopes", "d"), {"name": "d"}).json()["parents"] == []

    def test_a_cycle_is_400_and_names_its_path(self, admin):
        top = make_scope("top")
        make_scope("low", top)
        answer = edit(admin, "patch", url("scopes", "top"), {"parents": ["low"]})
        assert answer.status_code == 400
        assert "top → low → top" in answer.json()["error"]["fields"]["parents"][0]

    def test_an_unknown_parent_is_400_at_its_place(self, admin):
        answer = admin.post(url("scopes"), {"name": "c", "parents": ["none"]}, format="json")
        assert answer.status_code == 400
        assert "parents[0]" in answer.json()["error"]["fields"]
        assert not Scope.objects.exists()


class TestLists:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("count", [5, 50])
    def test_queries_do_not_grow_with_the_rows(self, admin, kind, count, django_assert_max_num_queries):
        pool, parent = make_pool("p"), make_scope("top")
        for number in range(count):
            scope = make_scope(None, parent, funding=parent)
            profile = make_profile(make_model(pool=pool, scope=scope))
            make_measurement(profile)
            make_node(pool=pool)
            if kind == "pools":
                make_pool()
            if kind == "slos":
                admin.post(url("slos"), {"name": f"s{number}"}, format="json")
            if kind == "quotas":
                body = {"scope": scope.name, "pool": "p", "target": "gpu", "limit": 1}
                assert admin.post(url("quotas"), body, format="json").status_code == 201
        with django_assert_max_num_queries(6):
            answer = admin.get(url(kind), {"page_size": 200}).json()
        assert answer["count"] >= count
        assert len(answer["results"]) == answer["count"]

    def test_pages_hold_each_row_once_and_the_last_one_stands_for_those_past_the_end(self, operator):
        pool = make_pool("p")
        names = sorted(make_node(pool=pool).name for _ in range(7))
        pages = [operator.get(url("nodes"), {"page_size": 3, "page": page}).json() for page in (1, 2, 3, 10**30)]
        assert [row["name"] for page in pages[:3] for row in page["results"]] == names
        assert pages[3]["page"] == 3
        assert (pages[0]["count"], pages[0]["pages"], pages[0]["previous"]) == (7, 3, None)
        assert "page=2" in pages[0]["next"]

    @pytest.mark.parametrize("size", ["0", "-1", "x", "999999999999999999999", "9" * 5000])
    def test_the_size_of_a_page_is_the_server_s(self, operator, size):
        pool = make_pool("p")
        Node.objects.bulk_create(Node(name=f"n{number}", pool=pool) for number in range(210))
        assert len(operator.get(url("nodes"), {"page_size": size}).json()["results"]) <= 200

    def test_a_filter_is_applied_and_an_unknown_one_refused(self, operator):
        one, two = make_profile(name="x"), make_profile(name="y")
        rows = operator.get(url("profiles"), {"model": one.model.name}).json()["results"]
        assert [row["id"] for row in rows] == [one.pk]
        assert two.pk != one.pk
        answer = operator.get(url("profiles"), {"modell": "x"})
        assert answer.status_code == 400
        assert "modell" in answer.json()["error"]["fields"]
        assert operator.get(url("profiles") + "?model=%00").status_code == 400
        assert Profile.objects.count() == 2
