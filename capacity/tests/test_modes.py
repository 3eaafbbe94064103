"""From advise to auto: what is shown before a switch, when a reason is asked for, and by which ways one may switch."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone

from capacity import mode_facts
from capacity.models import LanguageModel, Measurement, Replica, Rollup
from capacity.rollup import bucket_of, roll
from capacity.scorecards import card_of, recorded
from capacity.services import model_mode, save
from capacity.services.modes import doubts
from capacity.tests.api_people import member, person
from capacity.tests.factories import make_measurement, make_model, make_pool, make_profile, make_scope
from capacity.tests.fleet import Fleet
from capacity.tests.pages import make_person, make_sample
from quotas.models import User

pytestmark = pytest.mark.django_db

LOCATED = {"kind": "located", "stages": [{"concurrency": 10}]}


@pytest.fixture
def alice():
    return User.objects.create(username="alice", is_operator=True)


def remember(model, demands, *, replicas=(), capacity=10, until=None):
    """A rollup of five minutes a demand, the last of them over by now."""
    until = bucket_of(until or timezone.now()) - timedelta(minutes=5 * len(demands))
    rows = []
    for number, demand in enumerate(demands):
        at = until + timedelta(minutes=5 * number)
        sample = make_sample(model, at, [(replica, demand) for replica in replicas], capacity)
        sample.demand_low = sample.demand_high = demand
        rows.append(Rollup(model=model, at=at, **{**roll([sample]), "samples": 20}))
        sample.delete()
    Rollup.objects.bulk_create(rows)


def known_well(model):
    """A week on record and a located measurement."""
    sample = make_sample(model, timezone.now(), [], 10)
    rolled = {**roll([sample]), "samples": 20}
    now = bucket_of(timezone.now())
    Rollup.objects.bulk_create(Rollup(model=model, at=now - timedelta(minutes=5 * n), **rolled) for n in range(1, 7 * 288 + 1))
    make_measurement(make_profile(model), evidence=LOCATED)


# --- when a reason is asked for -----------------------------------------------------------------------------------
def test_a_model_of_which_little_is_known_acts_only_with_a_reason(alice):
    model = make_model(mode="advise")
    with pytest.raises(ValidationError) as refused:
        model_mode(model, "add_only", actor=alice, reason="")
    assert "recorded for 0.0 of the last 14 days, fewer than 7" in refused.value.message_dict["mode"][0]
    assert "measurement whose limit was located" in refused.value.message_dict["mode"][0]
    assert LanguageModel.objects.get().mode == "advise"
    model_mode(model, "add_only", actor=alice, reason="it is only a trial")
    assert LanguageModel.objects.get().history.first().history_change_reason == "it is only a trial"


def test_a_model_that_is_known_well_is_switched_without_one(alice):
    model = make_model(mode="advise")
    known_well(model)
    assert doubts(model, timezone.now()) == []
    model_mode(model, "auto", actor=alice, reason="")
    assert LanguageModel.objects.get().mode == "auto"


@pytest.mark.parametrize(
    ("before", "after", "asks"),
    [
        ("advise", "add_only", True),
        ("advise", "auto", True),
        ("add_only", "auto", True),
        ("paused", "auto", True),
        ("auto", "add_only", False),
        ("auto", "advise", False),
        ("auto", "paused", False),
        ("paused", "advise", False),
        ("advise", "paused", False),
    ],
)
def test_only_more_freedom_asks_for_a_reason(alice, before, after, asks):
    model = make_model(mode=before)
    if asks:
        with pytest.raises(ValidationError):
            model_mode(model, after, actor=alice, reason="")
    else:
        model_mode(model, after, actor=alice, reason="")
    assert LanguageModel.objects.get().mode == (before if asks else after)


def test_other_edits_of_a_model_that_acts_ask_for_none(alice):
    model = make_model(mode="auto")
    model.priority = 3
    save(model, actor=alice)
    assert LanguageModel.objects.get().priority == 3


def test_what_the_product_itself_sets_up_needs_no_reason():
    model = make_model(mode="advise")
    model_mode(model, "auto", actor=None, reason="")
    assert LanguageModel.objects.get().mode == "auto"


@pytest.mark.parametrize(
    ("status", "evidence", "located"),
    [
        ("current", LOCATED, True),
        ("current", {**LOCATED, "kind": "at_least"}, False),
        ("current", {"stages": LOCATED["stages"]}, False),
        ("stale", LOCATED, False),
        ("assumed", LOCATED, False),
        ("current", ["located"], False),
    ],
)
def test_only_a_current_measurement_whose_limit_was_located_counts(status, evidence, located):
    model = make_model(mode="advise")
    make_measurement(make_profile(model), status=status, evidence=evidence)
    assert any("located" in doubt for doubt in doubts(model, timezone.now())) is not located


def test_the_measurement_of_a_retired_profile_does_not_count():
    model = make_model(mode="advise")
    make_measurement(make_profile(model, state="retire"), evidence=LOCATED)
    assert any("located" in doubt for doubt in doubts(model, timezone.now()))


def test_a_stretch_whose_load_was_never_known_is_not_covered():
    model = make_model()
    remember(model, [3, 3])
    row = Rollup.objects.order_by("at").first()
    row.totals["demand_high"] = None
    row.save()
    assert recorded(model, timezone.now()) == timedelta(minutes=5)


# --- the card of a live pool --------------------------------------------------------------------------------------
def test_the_card_is_made_of_what_the_rollups_hold():
    fleet = Fleet(min_replicas=1, mode="advise")
    now = fleet.fake.now()
    replicas = [
        Replica.objects.create(
            name=f"r{number}", pool=fleet.pool, model=fleet.model, profile=fleet.profile, state="ready", nodes=["n1"]
        )
        for number in range(3)
    ]
    remember(fleet.model, [2] * 12, replicas=replicas, until=now)
    built, _ = mode_facts.advise(fleet.deps, fleet.lease, now)
    found = card_of(fleet.model, built, now)
    assert (found.card.covered_seconds, found.starts_seen, found.start_seconds) == (3600, 0, 300)
    assert found.card.ran.unit_hours == {"sim": 3.0}
    assert found.card.kept.removals == 2
    assert found.card.kept.unit_hours["sim"] < 3


def test_starts_that_were_seen_say_how_long_one_lasts():
    fleet = Fleet(min_replicas=1)
    now = fleet.fake.now()
    for number, seconds in enumerate((40, 60, 500)):
        Replica.objects.create(
            name=f"r{number}", pool=fleet.pool, model=fleet.model, profile=fleet.profile, created_at=now - timedelta(hours=1),
            ready_at=now - timedelta(hours=1) + timedelta(seconds=seconds), gone_at=now,
        )  # fmt: skip
    built, _ = mode_facts.advise(fleet.deps, fleet.lease, now)
    found = card_of(fleet.model, built, now)
    assert (found.starts_seen, found.start_seconds) == (3, 60)


# --- the next pass in another mode --------------------------------------------------------------------------------
def preview_of(fleet, mode):
    built, current = mode_facts.advise(fleet.deps, fleet.lease, fleet.fake.now())
    return mode_facts.preview(built, current, "chat", mode)


@pytest.mark.parametrize(("mode", "starts", "advised"), [("auto", 2, 0), ("add_only", 2, 0), ("advise", 0, 2), ("paused", 0, 0)])
def test_the_preview_says_in_numbers_what_would_be_done(mode, starts, advised):
    fleet = Fleet(min_replicas=2, mode="advise")
    found = preview_of(fleet, mode)
    assert (found.starts, found.stops, found.advised) == (starts, 0, advised)
    assert LanguageModel.objects.get().mode == "advise"


def test_a_removal_is_done_in_auto_and_advice_in_add_only():
    fleet = Fleet(min_replicas=1)
    fleet.a_pass()
    fleet.passes(1)
    fleet.share(21)
    fleet.passes(2)
    LanguageModel.objects.update(mode="advise")
    fleet.share(0)
    fleet.passes(4)
    assert [(preview_of(fleet, mode).stops, preview_of(fleet, mode).advised) for mode in ("auto", "add_only")] == [(1, 0), (0, 1)]


# --- the page, the API, the command, the admin --------------------------------------------------------------------
@pytest.fixture
def live(monkeypatch):
    """A live pool as the pages see it."""
    monkeypatch.setattr("capacity.tests.fleet.START", datetime.now(UTC))
    fleet = Fleet(min_replicas=2, mode="advise")
    monkeypatch.setattr(mode_facts, "deps", lambda: fleet.deps)
    return fleet


@pytest.fixture
def operator(client):
    client.force_login(make_person("olga", is_operator=True))
    return client


PAGE = "/models/chat/mode/"


def test_the_page_shows_numbers_first_and_then_the_card(live, operator):
    remember(live.model, [2, 25, 2])
    page = operator.get(PAGE, {"mode": "auto"})
    text = page.content.decode()
    assert "<b>2</b> starts and <b>0</b> stops would be done" in text
    assert text.index("The next pass") < text.index("The last 14 days")
    assert "25 requests on" in text
    assert f"{reverse('model', args=['chat'])}?from=" in text
    assert "A reason is needed." in text


def test_the_page_refuses_without_a_reason_keeps_what_was_asked_and_takes_one(live, operator):
    refused = operator.post(PAGE, {"mode": "auto", "reason": ""})
    assert refused.status_code == 400
    assert "Give a reason to switch it to auto all the same." in refused.content.decode()
    assert LanguageModel.objects.get().mode == "advise"
    taken = operator.post(PAGE, {"mode": "auto", "reason": "trial <b>"}, follow=True)
    assert "chat is in mode auto: acts." in taken.content.decode()
    assert LanguageModel.objects.get().mode == "auto"


@pytest.mark.parametrize("mode", ["", "wild"])
def test_a_mode_that_is_none_changes_nothing(live, operator, mode):
    assert operator.post(PAGE, {"mode": mode, "reason": "why"}).status_code == 400
    assert LanguageModel.objects.get().mode == "advise"


def test_a_viewer_sees_the_card_and_no_plan_and_switches_nothing(live, client):
    scope = make_scope("acme")
    LanguageModel.objects.update(scope=scope)
    client.force_login(make_person("vera", scope))
    text = client.get(PAGE).content.decode()
    assert "The last 14 days" in text
    assert "The next pass" not in text
    assert '<form method="post" id="switch"' not in text
    assert client.post(PAGE, {"mode": "auto", "reason": "mine"}).status_code == 403
    client.force_login(make_person("sam", make_scope("other")))
    assert client.get(PAGE).status_code == client.post(PAGE, {"mode": "auto", "reason": "x"}).status_code == 404
    assert LanguageModel.objects.get().mode == "advise"


def test_a_model_named_like_the_page_keeps_its_own_page(live, operator):
    make_model("a/mode", pool=live.pool)
    assert "<h1>a/mode</h1>" in operator.get("/models/a/mode/").content.decode()
    assert operator.get("/models/a/mode/mode/").status_code == 200


def test_the_api_shows_switches_and_refuses_as_the_page_does(live):
    olga = person("olga", is_operator=True)
    url = "/api/v1/models/chat/mode"
    shown = olga.get(url, {"mode": "auto"}).json()
    assert (shown["mode"], shown["next_pass"]["starts"], shown["scorecard"]["covered_days"]) == ("advise", 2, 0.0)
    assert len(shown["reason_needed"]) == 2
    refused = olga.post(url, {"mode": "auto"}, format="json")
    assert refused.status_code == 400
    assert "Give a reason" in refused.json()["error"]["fields"]["mode"][0]
    assert olga.post(url, {"mode": "auto", "reason": "trial"}, format="json").json() == {"model": "chat", "mode": "auto"}
    assert olga.get(url, {"mode": "wild"}).status_code == 400
    assert olga.post(url, {"mode": "wild", "reason": "x"}, format="json").status_code == 400
    assert olga.post(url, {"mode": "auto", "speed": 3}, format="json").status_code == 400


def test_the_api_gives_a_viewer_the_card_alone_and_a_stranger_nothing(live):
    scope = make_scope("acme")
    LanguageModel.objects.update(scope=scope)
    url = "/api/v1/models/chat/mode"
    viewer, stranger = member("vera", scope), member("sam", make_scope("other"))
    assert viewer.get(url).json()["next_pass"] is None
    assert viewer.post(url, {"mode": "auto", "reason": "x"}, format="json").status_code == 403
    assert stranger.get(url).status_code == stranger.post(url, {"mode": "auto", "reason": "x"}, format="json").status_code == 404


@pytest.mark.parametrize("method", ["post", "patch"])
def test_the_catalogue_of_the_api_does_not_get_round_the_reason(method):
    olga = person("olga", is_operator=True)
    make_pool("p")
    if method == "post":
        answer = olga.post("/api/v1/models", {"name": "m", "pool": "p", "mode": "auto"}, format="json")
    else:
        make_model("m", mode="advise")
        etag = olga.get("/api/v1/models/m")["ETag"]
        answer = olga.patch("/api/v1/models/m", {"mode": "auto"}, format="json", headers={"If-Match": etag})
    assert answer.status_code == 400
    assert "Give a reason" in answer.json()["error"]["fields"]["mode"][0]


def test_the_admin_form_does_not_get_round_the_reason(client):
    from capacity.tests.admin_pages import form_data, page_of

    client.force_login(make_person("olga", is_operator=True, is_staff=True))
    model = make_model("m", mode="advise")
    data = form_data(client.get(page_of(model))) | {"mode": "auto"}
    assert "Give a reason" in str(client.post(page_of(model), data).context["adminform"].form.errors["mode"])
    assert client.post(page_of(model), data | {"reason": "trial"}).status_code == 302
    assert LanguageModel.objects.get().mode == "auto"


def command(*arguments):
    out = StringIO()
    call_command("model_mode", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_shows_and_switches(live):
    text = command("chat", "auto", "--preview")
    assert "The next pass in mode auto: 2 starts and 0 stops are done" in text
    assert json.loads(command("chat", "auto", "--preview", "--json"))["next_pass"]["starts"] == 2
    assert LanguageModel.objects.get().mode == "advise"
    assert command("chat", "auto", "--reason", "trial") == "chat is in mode auto: acts.\n"
    assert LanguageModel.objects.get().mode == "auto"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("chat", "auto"), "Say why"),
        (("chat", "auto", "--reason", "  "), "Say why"),
        (("nobody", "auto", "--reason", "x"), "There is no model “nobody”."),
        (("chat", "auto", "--reason", "x" * 101), "longer than 100 characters"),
        (("chat", "wild", "--reason", "x"), "invalid choice"),
    ],
)
def test_a_wrong_command_says_so_and_changes_nothing(arguments, sentence):
    make_model("chat", mode="advise")
    with pytest.raises(CommandError, match=sentence):
        command(*arguments)
    assert LanguageModel.objects.get().mode == "advise"
    assert not Measurement.objects.exists()


def test_a_card_is_made_anew_when_what_it_is_made_of_changes():
    fleet = Fleet(min_replicas=1, mode="advise")
    now = fleet.fake.now()
    remember(fleet.model, [25] * 4, until=now)

    def adds():
        fleet.deps.measurements.expire()
        built, _ = mode_facts.advise(fleet.deps, fleet.lease, now)
        return card_of(fleet.model, built, now).card.kept.adds

    assert adds() == adds() == 3
    Measurement.objects.update(max_concurrency=5)
    assert adds() == 5
    LanguageModel.objects.update(max_replicas=2)
    assert adds() == 2
    Rollup.objects.all().delete()
    assert adds() == 0
