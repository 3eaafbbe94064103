"""What gateways ask and tell: endpoints, load, wake."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from capacity.models import Replica
from capacity.sources.push_store import PushStore
from capacity.tests.api_people import member, person
from capacity.tests.factories import make_measurement, make_model, make_pool, make_profile, make_scope

pytestmark = pytest.mark.django_db


@pytest.fixture
def gateway():
    return person("gateway", is_service=True)


@pytest.fixture
def chat():
    return make_model("a/chat", pool=make_pool("p"), scope=make_scope("acme"), served_names=["chat-lora", 'q"🐙'])


def replica(profile, name, state="ready", **fields):
    row = {"pool": profile.model.pool, "model": profile.model, "profile": profile, "url": f"http://127.0.0.1/{name}", **fields}
    return Replica.objects.create(name=name, state=state, **row)


def weights(client):
    answer = client.get("/api/v1/endpoints?pool=p")
    assert answer.status_code == 200
    return {row["replica"]: row["weight"] for row in answer.json()["endpoints"]}


class TestEndpoints:
    def test_a_ready_replica_weighs_its_measured_concurrency(self, gateway, chat):
        profile = make_profile(chat)
        make_measurement(profile, max_concurrency=8)
        replica(profile, "chat-1")
        assert gateway.get("/api/v1/endpoints?pool=p").json() == {
            "endpoints": [{"replica": "chat-1", "model": "a/chat", "url": "http://127.0.0.1/chat-1", "weight": 8}],
            "models": [{"name": "a/chat", "served_names": ["chat-lora", 'q"🐙']}],
        }

    def test_the_newest_measurement_counts(self, gateway, chat):
        profile = make_profile(chat)
        make_measurement(profile, max_concurrency=9, measured_at=datetime(2026, 2, 1, tzinfo=UTC))
        make_measurement(profile, max_concurrency=8, measured_at=datetime(2026, 1, 1, tzinfo=UTC))
        replica(profile, "chat-1")
        assert weights(gateway) == {"chat-1": 9}

    def test_a_current_measurement_counts_before_a_newer_doubtful_one(self, gateway, chat):
        profile = make_profile(chat)
        make_measurement(profile, max_concurrency=9, measured_at=datetime(2026, 1, 1, tzinfo=UTC))
        make_measurement(profile, max_concurrency=2, status="stale", measured_at=datetime(2026, 2, 1, tzinfo=UTC))
        replica(profile, "chat-1")
        assert weights(gateway) == {"chat-1": 9}

    @pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "http://[fe80::1]:8000", "javascript:alert(1)"])
    def test_a_gateway_is_never_sent_to_a_refused_address(self, gateway, chat, url, settings):
        replica(make_profile(chat), "chat-1", url=url)
        assert weights(gateway) == {}
        settings.ALLOW_LINK_LOCAL = True
        assert weights(gateway) == ({} if url.startswith("javascript") else {"chat-1": 1})

    def test_an_unmeasured_one_weighs_the_smallest_measured_of_its_model(self, gateway, chat):
        for concurrency in (0, 8, 20):
            make_measurement(make_profile(chat), max_concurrency=concurrency)
        make_measurement(make_profile(make_model(pool=chat.pool)), max_concurrency=3)
        replica(make_profile(chat), "chat-1")
        assert weights(gateway) == {"chat-1": 8}

    def test_without_any_measurement_it_weighs_one(self, gateway, chat):
        replica(make_profile(chat), "chat-1")
        assert weights(gateway) == {"chat-1": 1}

    @pytest.mark.parametrize("state", ["starting", "unready", "draining", "gone"])
    def test_only_ready_ones_are_named(self, gateway, chat, state):
        replica(make_profile(chat), "chat-1", state)
        assert weights(gateway) == {}

    def test_one_that_is_gone_or_has_no_address_is_absent(self, gateway, chat):
        profile = make_profile(chat)
        replica(profile, "chat-1", gone_at=datetime(2026, 1, 1, tzinfo=UTC))
        replica(profile, "chat-2", url="")
        assert weights(gateway) == {}

    def test_another_pool_is_absent(self, gateway, chat):
        replica(make_profile(make_model(pool=make_pool("q"))), "other-1")
        assert weights(gateway) == {}

    @pytest.mark.parametrize("count", [5, 50])
    def test_the_number_of_queries_is_fixed(self, gateway, chat, count, django_assert_num_queries):
        for number in range(count):
            model = make_model(pool=chat.pool)
            profile = make_profile(model)
            make_measurement(profile)
            replica(profile, f"r{number}")
        with django_assert_num_queries(6):  # token and its user, pool, models, profiles, replicas
            assert len(weights(gateway)) == count

    def test_a_viewer_sees_his_own_models_alone(self, chat):
        other = make_model("other", pool=chat.pool, scope=make_scope("beta"))
        replica(make_profile(chat), "chat-1")
        replica(make_profile(other), "other-1")
        answer = member("alice", chat.scope).get("/api/v1/endpoints?pool=p").json()
        assert [row["replica"] for row in answer["endpoints"]] == ["chat-1"]
        assert [row["name"] for row in answer["models"]] == ["a/chat"]

    def test_a_foreign_or_unknown_pool_is_404(self, chat):
        bob = member("bob", make_scope("beta"))
        assert bob.get("/api/v1/endpoints?pool=p").status_code == 404
        assert bob.get("/api/v1/endpoints?pool=none").status_code == 404
        assert bob.get("/api/v1/endpoints?pool=%00").status_code == 404

    def test_the_pool_may_be_left_out_while_there_is_one(self, gateway, chat):
        assert gateway.get("/api/v1/endpoints").status_code == 200
        make_pool("q")
        answer = gateway.get("/api/v1/endpoints")
        assert answer.status_code == 400
        assert "pool" in answer.json()["error"]["fields"]


@pytest.fixture
def store(redis_client, redis_server, settings):
    settings.REDIS_URL = redis_server
    return PushStore(redis_client)


class TestLoad:
    def test_a_push_is_stored_under_the_models_own_names(self, gateway, chat, store):
        replica(make_profile(chat), "chat-1")
        body = {
            "source": "g1",
            "replicas": {"chat-1": 3, "gone-1": 4},
            "models": {"a/chat": {"held": 2}, "chat-lora": {"held": 5}, "nobody": {"held": 1}},
        }
        answer = gateway.post("/api/v1/load?pool=p", body, format="json")
        assert (answer.status_code, answer.json()) == (
            200,
            {"source": "g1", "taken": {"replicas": 1, "models": 1}, "ignored": ["gone-1", "nobody"]},
        )
        (push,) = store.read("p").pushes
        assert push.replicas == {"chat-1": 3}
        assert {name: said.held for name, said in push.models.items()} == {"a/chat": 7}

    def test_the_later_arrival_of_two_names_counts(self, gateway, chat, store):
        early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
        models = {"a/chat": {"last_arrival_at": late}, "chat-lora": {"last_arrival_at": early}}
        assert gateway.post("/api/v1/load?pool=p", {"source": "g1", "models": models}, format="json").status_code == 200
        assert store.read("p").arrivals["a/chat"] == datetime(2026, 1, 2, tzinfo=UTC)

    def test_an_invalid_push_is_400_with_all_paths_and_stores_nothing(self, gateway, chat, store):
        body = {"source": "", "replicas": {"chat-1": -1}, "typo": 1}
        answer = gateway.post("/api/v1/load?pool=p", body, format="json")
        assert answer.status_code == 400
        assert set(answer.json()["error"]["fields"]) == {"$", "$.source", "$.replicas['chat-1']"}
        assert store.read("p").pushes == ()

    def test_members_may_not_push(self, chat, store):
        alice = member("alice", chat.scope, "manager")
        assert alice.post("/api/v1/load?pool=p", {"source": "g1"}, format="json").status_code == 403
        assert store.read("p").pushes == ()

    def test_without_redis_it_is_503_and_says_so(self, gateway, chat):
        answer = gateway.post("/api/v1/load?pool=p", {"source": "g1"}, format="json")
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "unavailable"


class TestWake:
    @pytest.mark.parametrize("path", ["a/chat", "chat-lora", "q%22%F0%9F%90%99"])
    def test_a_model_is_woken_by_each_of_its_names(self, gateway, chat, path):
        answer = gateway.post(f"/api/v1/models/{path}/wake")
        assert answer.status_code == 202, answer.content
        chat.refresh_from_db()
        assert chat.woken_at is not None
        assert answer.json()["model"] == "a/chat"
        assert answer.json()["woken_at"].endswith("Z")

    def test_a_model_that_is_called_like_another_s_alias_is_meant_itself(self, gateway, chat):
        other = make_model("chat-lora", pool=chat.pool)
        assert gateway.post("/api/v1/models/chat-lora/wake").json()["model"] == other.name

    def test_a_manager_wakes_and_a_viewer_does_not(self, chat):
        assert member("alice", chat.scope, "manager").post("/api/v1/models/a/chat/wake").status_code == 202
        assert member("vera", chat.scope).post("/api/v1/models/a/chat/wake").status_code == 403

    def test_a_foreign_model_is_404(self, chat):
        bob = member("bob", make_scope("beta"), "manager")
        assert bob.post("/api/v1/models/a/chat/wake").status_code == 404
        assert bob.post("/api/v1/models/none/wake").status_code == 404

    def test_a_model_that_is_off_is_not_woken(self, gateway, chat):
        off = make_model("off", pool=chat.pool, min_replicas=0, max_replicas=0)
        answer = gateway.post("/api/v1/models/off/wake")
        assert answer.status_code == 400
        off.refresh_from_db()
        assert off.woken_at is None
