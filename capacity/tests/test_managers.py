"""A manager edits what lies below his own scope, within its limit and its guarantee, and learns nothing of the rest."""

from __future__ import annotations

import json
import re
from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management import CommandError, call_command

from capacity.tests.api_people import member, person
from capacity.tests.factories import make_model, make_pool, make_scope
from quotas import services
from quotas.models import CapacityQuota, Membership, Pool, Scope, ScopeEdge, User

pytestmark = pytest.mark.django_db
IF_ANY = {"headers": {"If-Match": "*"}, "format": "json"}


@pytest.fixture
def pool() -> Pool:
    return make_pool("p")


@pytest.fixture
def tree(pool: Pool) -> dict[str, Scope]:
    """org funds dept and rival; dept funds team, which funds crew, and side; shared stands under rival first, then under dept."""
    org = make_scope("org")
    dept, rival = make_scope("dept", org), make_scope("rival", org)
    team, side = make_scope("team", dept), make_scope("side", dept)
    found = {"org": org, "dept": dept, "rival": rival, "team": team, "side": side, "crew": make_scope("crew", team)}
    quota(org, pool, limit=20, guarantee=12)
    quota(dept, pool, guarantee=8)
    quota(dept, pool, target="sim/a", limit=6)
    return {**found, "shared": make_scope("shared", rival, dept)}


def quota(scope: Scope, pool: Pool, target: str = "sim", **fields: Any) -> CapacityQuota:
    return CapacityQuota.objects.create(scope=scope, pool=pool, target=target, **fields)


@pytest.fixture
def mia(tree: dict[str, Scope]) -> Any:
    return member("mia", tree["dept"], Membership.Role.MANAGER)


def parents_of(name: str) -> list[str]:
    return [edge.parent.name for edge in Scope.objects.get(name=name).parent_edges.select_related("parent")]


def refused(answer: Any) -> str:
    assert answer.status_code == 400, answer.content
    return " ".join(text for texts in answer.json()["error"]["fields"].values() for text in texts)


class TestScopes:
    def test_he_makes_renames_moves_and_deletes_those_below(self, mia: Any) -> None:
        assert mia.post("/api/v1/scopes", {"name": "new", "parents": ["team"]}, format="json").status_code == 201
        assert mia.patch("/api/v1/scopes/new", {"name": "newer", "reason": "x"}, **IF_ANY).status_code == 200
        assert mia.patch("/api/v1/scopes/newer", {"parents": ["dept", "side"], "funding": "side"}, **IF_ANY).status_code == 200
        assert parents_of("newer") == ["dept", "side"]
        assert mia.delete("/api/v1/scopes/newer", **IF_ANY).status_code == 204
        assert not Scope.objects.filter(name="newer").exists()

    @pytest.mark.parametrize(("name", "status"), [("dept", 403), ("org", 404), ("rival", 404), ("no-such", 404)])
    @pytest.mark.parametrize("method", ["put", "patch", "delete"])
    def test_his_own_is_403_and_what_is_foreign_is_404(self, mia: Any, name: str, status: int, method: str) -> None:
        assert getattr(mia, method)(f"/api/v1/scopes/{name}", {"name": "x", "parents": ["team"]}, **IF_ANY).status_code == status

    def test_a_foreign_parent_is_answered_as_one_that_does_not_exist(self, mia: Any) -> None:
        answers = [
            mia.post("/api/v1/scopes", {"name": "new", "parents": [parent]}, format="json")
            for parent in ("rival", "org", "no-such")
        ]
        bodies = [{**answer.json()["error"], "request_id": ""} for answer in answers]
        assert [answer.status_code for answer in answers] == [404, 404, 404]
        assert bodies[0] == bodies[1] == bodies[2]
        assert mia.patch("/api/v1/scopes/team", {"parents": ["dept", "rival"]}, **IF_ANY).status_code == 404
        assert parents_of("team") == ["dept"]

    def test_a_scope_without_a_parent_is_an_admins(self, mia: Any) -> None:
        assert "Name a parent" in refused(mia.post("/api/v1/scopes", {"name": "new"}, format="json"))
        assert "Name a parent" in refused(mia.patch("/api/v1/scopes/team", {"parents": []}, **IF_ANY))

    def test_a_cycle_names_its_path(self, mia: Any) -> None:
        answer = mia.patch("/api/v1/scopes/team", {"parents": ["crew"]}, **IF_ANY)
        assert "team → crew → team" in refused(answer)

    def test_one_that_also_stands_elsewhere_keeps_its_unseen_parents(self, mia: Any) -> None:
        shown = mia.get("/api/v1/scopes/shared").json()
        assert shown["parents"] == ["dept"]
        assert mia.put("/api/v1/scopes/shared", {**shown, "name": "common"}, **IF_ANY).status_code == 200
        assert parents_of("common") == ["rival", "dept"]
        for parents in (["team"], [], ["dept", "side"]):
            answer = mia.patch("/api/v1/scopes/common", {"parents": parents}, **IF_ANY)
            assert (answer.status_code, "rival" in str(answer.json())) == (403, False)
        assert mia.delete("/api/v1/scopes/common", **IF_ANY).status_code == 403
        assert parents_of("common") == ["rival", "dept"]

    def test_an_unseen_funding_parent_stays_that(self, mia: Any) -> None:
        ScopeEdge.objects.filter(child__name="shared", parent__name="rival").update(is_funding=True)
        shown = mia.get("/api/v1/scopes/shared").json()
        assert shown["funding"] is None
        assert mia.put("/api/v1/scopes/shared", shown, **IF_ANY).status_code == 200
        assert ScopeEdge.objects.get(child__name="shared", is_funding=True).parent.name == "rival"
        assert mia.patch("/api/v1/scopes/shared", {"funding": "dept"}, **IF_ANY).status_code == 403

    def test_a_scope_seen_as_a_viewer_is_not_moved_to(self, mia: Any, tree: dict[str, Scope]) -> None:
        Membership.objects.create(user=mia.user, scope=tree["rival"])
        assert mia.patch("/api/v1/scopes/team", {"parents": ["rival"]}, **IF_ANY).status_code == 403
        assert mia.patch("/api/v1/scopes/rival", {"name": "x"}, **IF_ANY).status_code == 403

    @pytest.mark.parametrize("kind", ["viewer", "operator"])
    def test_viewers_and_operators_write_none(self, tree: dict[str, Scope], kind: str) -> None:
        client = member("vera", tree["dept"]) if kind == "viewer" else person("olga", is_operator=True)
        assert client.post("/api/v1/scopes", {"name": "new", "parents": ["team"]}, format="json").status_code == 403
        assert client.patch("/api/v1/scopes/team", {"name": "x"}, **IF_ANY).status_code == 403

    def test_an_operator_who_manages_a_scope_writes_below_it_alone(self, tree: dict[str, Scope]) -> None:
        olga = person("olga", is_operator=True)
        Membership.objects.create(user=olga.user, scope=tree["dept"], role="manager")
        assert olga.patch("/api/v1/scopes/team", {"name": "x"}, **IF_ANY).status_code == 200
        assert olga.patch("/api/v1/scopes/rival", {"name": "y"}, **IF_ANY).status_code == 403

    def test_the_service_refuses_whoever_has_no_role(self, tree: dict[str, Scope]) -> None:
        nobody = User.objects.create(username="nobody")
        for act in (
            lambda: services.scope_save(Scope(name="new"), parents=[tree["team"]], actor=nobody),
            lambda: services.scope_save(tree["team"], actor=nobody),
            lambda: services.scope_delete(tree["crew"], actor=nobody),
        ):
            with pytest.raises(PermissionDenied):
                act()


class TestLimits:
    def limit(self, client: Any, scope: str, limit: int | None, **fields: Any) -> Any:
        return client.post(
            "/api/v1/quotas", {"scope": scope, "pool": "p", "target": "sim", "limit": limit, **fields}, format="json"
        )

    @pytest.mark.parametrize(
        ("target", "limit", "beyond"),
        [
            ("sim", 20, ""),
            ("sim", 21, "dept has at most 20 of sim (the limit of org): 21 is beyond it."),
            ("sim/a", 6, ""),
            ("sim/a", 7, "dept has at most 6 of sim/a (the limit of dept): 7 is beyond it."),
            ("sim/b", 21, "dept has at most 20 of sim (the limit of org): 21 is beyond it."),
            ("sim", None, ""),
            ("sim", 0, ""),
            ("other", 10**12, ""),
        ],
    )
    def test_a_limit_is_within_the_effective_one_of_his_own_scope(
        self, mia: Any, target: str, limit: int | None, beyond: str
    ) -> None:
        answer = self.limit(mia, "team", limit, target=target)
        assert answer.status_code == (400 if beyond else 201)
        assert not beyond or refused(answer) == beyond

    def test_what_was_beyond_before_may_stay_and_go_down(self, mia: Any, tree: dict[str, Scope], pool: Pool) -> None:
        row = quota(tree["team"], pool, limit=40)
        assert mia.patch(f"/api/v1/quotas/{row.pk}", {"weight": 3}, **IF_ANY).status_code == 200
        assert "20" in refused(mia.patch(f"/api/v1/quotas/{row.pk}", {"limit": 30}, **IF_ANY))
        assert mia.patch(f"/api/v1/quotas/{row.pk}", {"limit": 20}, **IF_ANY).status_code == 200

    @pytest.mark.parametrize(("scope", "status"), [("dept", 403), ("org", 404), ("rival", 404), ("no-such", 404)])
    def test_not_of_his_own_and_not_of_others(self, mia: Any, scope: str, status: int) -> None:
        assert self.limit(mia, scope, 1, target="sim/c").status_code == status

    def test_a_row_is_not_moved_out_of_what_is_his(self, mia: Any, tree: dict[str, Scope], pool: Pool) -> None:
        row = quota(tree["team"], pool, limit=1)
        assert mia.patch(f"/api/v1/quotas/{row.pk}", {"scope": "dept", "target": "sim/c"}, **IF_ANY).status_code == 403
        assert mia.patch(f"/api/v1/quotas/{row.pk}", {"scope": "rival"}, **IF_ANY).status_code == 404
        row.refresh_from_db()
        assert row.scope == tree["team"]

    def test_a_model_or_a_pool_that_he_does_not_see_is_none(self, mia: Any, pool: Pool, tree: dict[str, Scope]) -> None:
        make_pool("hidden-pool")
        assert self.limit(mia, "team", 1, pool="hidden-pool").status_code == 404
        make_model("theirs", pool=pool, scope=tree["rival"])
        make_model("ours", pool=pool, scope=tree["team"])
        assert self.limit(mia, "team", 1, target="model:ours").status_code == 201
        foreign, unknown = (refused(self.limit(mia, "team", 1, target=f"model:{name}")) for name in ("theirs", "no-such"))
        assert foreign.replace("theirs", "no-such") == unknown


class TestGuarantees:
    def guarantee(self, client: Any, scope: str, guarantee: int | None, **fields: Any) -> Any:
        body = {"scope": scope, "pool": "p", "target": "sim", "guarantee": guarantee, **fields}
        return client.post("/api/v1/quotas", body, format="json")

    def test_the_children_together_get_no_more_than_he_has(self, mia: Any, tree: dict[str, Scope]) -> None:
        assert self.guarantee(mia, "team", 5).status_code == 201
        assert "would add up to 9, beyond its own 8" in refused(self.guarantee(mia, "side", 4))
        assert self.guarantee(mia, "side", 3).status_code == 201

    def test_a_grandchild_counts_where_its_parent_states_none(self, mia: Any) -> None:
        assert self.guarantee(mia, "crew", 6).status_code == 201
        assert "would add up to 9" in refused(self.guarantee(mia, "side", 3))
        # below a statement of its own it is scaled, and takes from nobody else
        assert self.guarantee(mia, "team", 5).status_code == 201
        assert self.guarantee(mia, "side", 3).status_code == 201

    def test_a_statement_that_shields_is_not_taken_away(self, mia: Any, tree: dict[str, Scope], pool: Pool) -> None:
        quota(tree["crew"], pool, guarantee=9)
        row = quota(tree["team"], pool, guarantee=5)
        assert "would add up to 9" in refused(mia.patch(f"/api/v1/quotas/{row.pk}", {"guarantee": None}, **IF_ANY))
        answer = mia.delete(f"/api/v1/quotas/{row.pk}", **IF_ANY)
        assert (answer.status_code, "would add up to 9" in answer.json()["error"]["message"]) == (400, True)

    def test_a_scope_without_a_guarantee_hands_none_out(self, mia: Any) -> None:
        assert "no guarantee on sim/b of its own" in refused(self.guarantee(mia, "team", 1, target="sim/b"))
        assert self.guarantee(mia, "team", 0, target="sim/b").status_code == 201

    def test_what_an_admin_gave_beyond_it_may_go_down(self, mia: Any, tree: dict[str, Scope], pool: Pool) -> None:
        row = quota(tree["team"], pool, guarantee=20)
        assert mia.patch(f"/api/v1/quotas/{row.pk}", {"guarantee": 15}, **IF_ANY).status_code == 200
        assert "would add up to 16" in refused(mia.patch(f"/api/v1/quotas/{row.pk}", {"guarantee": 16}, **IF_ANY))

    def test_one_that_others_fund_has_its_guarantee_from_them(self, mia: Any) -> None:
        assert "scope that you do not manage" in refused(self.guarantee(mia, "shared", 1))
        assert "scope that you do not manage" in refused(self.guarantee(mia, "shared", None, weight=7))
        assert "scope that you do not manage" in refused(self.guarantee(mia, "shared", None, lend=False))
        assert self.guarantee(mia, "shared", None, limit=3).status_code == 201

    def test_a_move_hands_out_no_more_either(self, tree: dict[str, Scope], pool: Pool, mia: Any) -> None:
        Membership.objects.create(user=mia.user, scope=tree["rival"], role="manager")
        quota(tree["side"], pool, guarantee=2)
        answer = mia.patch("/api/v1/scopes/side", {"parents": ["rival"]}, **IF_ANY)
        assert "rival has no guarantee on sim" in refused(answer)
        assert parents_of("side") == ["dept"]
        quota(tree["rival"], pool, guarantee=2)
        assert mia.patch("/api/v1/scopes/side", {"parents": ["rival"]}, **IF_ANY).status_code == 200

    def test_an_admin_is_only_warned(self, tree: dict[str, Scope], pool: Pool) -> None:
        root = User.objects.create(username="root", is_superuser=True)
        warnings = services.quota_save(CapacityQuota(scope=tree["team"], pool=pool, target="sim", guarantee=9), actor=root)
        assert any("beyond its own 8" in text for text in warnings)

    def test_stored_cycles_end(self, mia: Any, tree: dict[str, Scope]) -> None:
        ScopeEdge.objects.create(child=tree["team"], parent=tree["crew"], is_funding=True)
        assert self.guarantee(mia, "crew", 1).status_code == 400

    def test_what_others_are_guaranteed_is_in_no_warning(self, mia: Any, tree: dict[str, Scope], pool: Pool) -> None:
        quota(tree["rival"], pool, guarantee=1)
        row = quota(tree["shared"], pool, guarantee=77)
        answer = mia.patch(f"/api/v1/quotas/{row.pk}", {"limit": 20, "guarantee": None}, **IF_ANY)
        assert answer.status_code == 400
        assert "rival" not in answer.content.decode()


class TestRoles:
    def role(self, client: Any, user: str, scope: str, role: str = "viewer") -> Any:
        return client.post("/api/v1/memberships", {"user": user, "scope": scope, "role": role}, format="json")

    def test_he_gives_changes_and_takes_roles_below(self, mia: Any) -> None:
        User.objects.create(username="vera")
        made = self.role(mia, "vera", "team")
        assert made.status_code == 201
        path = f"/api/v1/memberships/{made.json()['id']}"
        assert mia.patch(path, {"role": "manager", "reason": "she leads it"}, **IF_ANY).status_code == 200
        assert Membership.objects.get(user__username="vera").history.first().history_change_reason == "she leads it"
        assert mia.delete(path, **IF_ANY).status_code == 204

    @pytest.mark.parametrize(("scope", "status"), [("dept", 403), ("org", 404), ("rival", 404)])
    def test_not_of_his_own_scope_and_not_of_others(self, mia: Any, scope: str, status: int) -> None:
        User.objects.create(username="vera")
        assert self.role(mia, "vera", scope).status_code == status

    def test_nobody_changes_his_own(self, mia: Any, tree: dict[str, Scope]) -> None:
        mine = Membership.objects.get(user=mia.user)
        assert mia.delete(f"/api/v1/memberships/{mine.pk}", **IF_ANY).status_code == 403
        assert self.role(mia, "mia", "team", "manager").status_code == 403
        below = Membership.objects.create(user=mia.user, scope=tree["team"])
        assert mia.patch(f"/api/v1/memberships/{below.pk}", {"role": "manager"}, **IF_ANY).status_code == 403

    def test_each_sees_his_own_and_managers_those_below(self, mia: Any, tree: dict[str, Scope]) -> None:
        member("root-viewer", tree["org"])
        vera, eve = member("vera", tree["team"]), member("eve", tree["rival"])
        seen = [[row["user"] for row in client.get("/api/v1/memberships").json()["results"]] for client in (mia, vera, eve)]
        assert seen == [["mia", "vera"], ["vera"], ["eve"]]

    def test_viewers_and_operators_give_none(self, tree: dict[str, Scope]) -> None:
        for client in (member("vera", tree["dept"]), person("olga", is_operator=True)):
            assert self.role(client, "vera", "team").status_code == 403


class TestCommand:
    def role(self, *arguments: str, **options: Any) -> str:
        out = StringIO()
        call_command("role", *arguments, stdout=out, **options)
        return out.getvalue().strip()

    def test_it_gives_changes_takes_and_lists_roles(self, tree: dict[str, Scope]) -> None:
        User.objects.create(username="vera")
        assert self.role("vera", "team", "viewer", reason="new here") == "vera: viewer of team."
        assert self.role("vera", "team", "manager", reason="leads it") == "vera: manager of team."
        assert Membership.objects.get().history.first().history_change_reason == "leads it"
        assert json.loads(self.role("vera", as_json=True)) == {"user": "vera", "roles": [{"scope": "team", "role": "manager"}]}
        assert self.role("vera", "team", "none", reason="left") == "vera: no role."

    @pytest.mark.parametrize(
        ("arguments", "status", "sentence"),
        [
            (["nobody"], 1, "There is no account “nobody”."),
            (["vera", "nowhere", "viewer"], 1, "There is no scope “nowhere”."),
            (["vera", "team"], 2, "Say which role: viewer, manager, none."),
            (["vera", "team", "none"], 1, "vera has no role in team."),
            (["vera", "team", "viewer", "--reason", " "], 2, "Say why: --reason “…”; it is kept in the history."),
        ],
    )
    def test_what_is_wrong_is_one_sentence(
        self, tree: dict[str, Scope], arguments: list[str], status: int, sentence: str
    ) -> None:
        User.objects.create(username="vera")
        with pytest.raises(CommandError, match=re.escape(sentence)) as refused:
            self.role(*arguments, *(() if "--reason" in arguments else ("--reason", "x")))
        assert refused.value.returncode == status
        assert not Membership.objects.exists()


def test_an_unsaved_row_of_nobody_is_checked_as_ever(tree: dict[str, Scope], pool: Pool) -> None:
    with pytest.raises(ValidationError):
        services.check(CapacityQuota(scope=tree["team"], pool=pool, target="sim", guarantee=3, limit=2))
