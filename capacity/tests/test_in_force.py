"""Which measurement a plan rests on, and what is set aside until a person says otherwise."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from capacity import importing
from capacity.bench.imports import read_files
from capacity.briefings.sweep_facts import Facts, replaced_sentences
from capacity.domain.measurement.moment import moment_of
from capacity.exported import measurement_document
from capacity.importing import Asked, would_store
from capacity.last_good_views import load_measurements
from capacity.models import BenchRun, Measurement, Profile
from capacity.services import Origin, measurement_accept, measurement_store, save
from capacity.tests.factories import make_measurement, make_model, make_profile
from capacity.tests.pages import make_person
from capacity.tests.sweeps import SLO, judged

pytestmark = pytest.mark.django_db
NEVER = ((1, 50.0, 900.0),)
TRIAL = ((1, 100.0, 50.0), (2, 190.0, 80.0))
"""Both levels meet the SLO, and nothing above was measured."""


def store(profile: Profile, *levels: Any, **origin: Any) -> Measurement:
    found, _ = measurement_store(profile, judged(*levels), slo=SLO, actor=None, reason="a trial", origin=Origin(**origin))
    return found


def planned(profile: Profile) -> int | None:
    """Requests in flight that a pass takes from the view; None: it knows the profile as unmeasured."""
    rows = load_measurements(None).in_use.get(profile.model.pool.name, ())
    return next((row.max_concurrency for row in rows if row.profile == profile.name), None)


def make_located(profile: Profile, concurrency: int) -> Measurement:
    return make_measurement(profile, max_concurrency=concurrency, kind="located", measured_at=timezone.now() - timedelta(days=1))


@pytest.mark.parametrize(
    ("before", "levels", "in_force"),
    [
        (6, TRIAL, 6),  # at least 2: vaguer and less
        (5, (), 5),  # 2 of 5 is less than half
        (4, (), 2),  # half, and located: a worse engine is a worse engine
        (2, (), 2),
        (1, TRIAL, 2),  # more than was known
        (6, NEVER, 6),
    ],
)
def test_what_says_less_or_less_surely_is_set_aside(before: int, levels: Any, in_force: int) -> None:
    profile = make_profile()
    make_located(profile, before)
    found = store(profile, *levels)
    assert planned(profile) == in_force
    aside = found.stale_cause == Measurement.Cause.ASIDE
    assert aside is (planned(profile) != found.max_concurrency)
    assert (found.status_word == "set aside") is aside and bool(found.stale_why) is aside


def test_the_first_of_a_profile_is_in_force_whatever_it_says() -> None:
    profile = make_profile()
    store(profile, *TRIAL)
    assert planned(profile) == 2


def test_what_was_measured_outside_of_the_fleet_is_in_force_when_a_person_says_so() -> None:
    profile = make_profile()
    found = store(profile, outside=True)
    assert (found.status_word, planned(profile)) == ("set aside", None)
    measurement_accept(found, actor=None, reason="the same engine, on the same GPU")
    assert (found.status, found.stale_cause, planned(profile)) == ("current", "", 2)


def test_what_was_never_in_force_stops_nobody_when_what_was_is_outdated() -> None:
    profile = make_profile(model=make_model("summarize"), engine_version="0.10")
    good = store(profile)
    store(profile, *NEVER, measured_at=timezone.now() + timedelta(minutes=1))  # set aside: it never met the SLO
    of_another = judged(*NEVER, model="other")
    other, _ = measurement_store(profile, of_another, slo=SLO, actor=None, reason="a file of another model")
    assert other.status_word == "outdated" and other.in_force_since is None
    profile.engine_version = "0.11"
    save(profile, actor=None, reason="an upgrade")
    good.refresh_from_db()
    assert (good.status, good.in_force_since is not None) == ("stale", True)
    assert planned(profile) == good.max_concurrency, "outdated, and good for adding"


def test_its_page_says_what_it_would_replace_before_it_is_put_in_force(client: Any) -> None:
    client.force_login(make_person("root", is_superuser=True, is_staff=True))
    profile = make_profile()
    make_located(profile, 6)
    found = store(profile, *NEVER)
    page = client.get(reverse("measurement", args=[found.pk])).content.decode()
    assert (
        "0 in flight (never met) then takes the place of 6 in flight (located). The profile is then started for no load" in page
    )
    assert "Set aside" in page and "Nothing rests on it." in page
    client.post(reverse("measurement_accept", args=[found.pk]), {"reason": "it is so"})
    assert planned(profile) == 0
    assert ">earlier</" in client.get(reverse("measurement", args=[profile.measurements.get(kind="located").pk])).content.decode()


def test_an_earlier_one_comes_back_into_force_and_the_newer_one_steps_aside() -> None:
    profile = make_profile()
    make_located(profile, 2)
    earlier = profile.measurements.get()
    newer = store(profile, measured_at=timezone.now())
    Measurement.objects.filter(pk=newer.pk).update(max_concurrency=3)
    assert planned(profile) == 3
    said = measurement_accept(earlier, actor=None, reason="the newer one was made on a warm cache")
    newer.refresh_from_db()
    assert planned(profile) == 2 and said[-1].startswith("2 in flight (located) then takes the place of 3 in flight")
    assert (newer.status_word, newer.in_force_since) == ("set aside", None)
    measurement_accept(newer, actor=None, reason="no, it was not")
    assert planned(profile) == 3


def test_an_export_is_outdated_where_the_profile_is_another_than_it_was_measured_of(tmp_path: Path) -> None:
    wide = make_profile(name="wide", units=2, template="sim")
    document = measurement_document(store(wide))
    path = tmp_path / "one.json"
    path.write_text(json.dumps(document))
    imported = read_files([path])
    narrow = make_profile(model=wide.model, name="narrow", units=1, template="sim")
    found = [would_store(importing.judged(imported, Asked(profile=profile)))[0] for profile in (wide, narrow)]
    assert [row.status for row in found] == ["current", "stale"]
    assert found[1].stale_why == "It was measured on units 2, and the profile has 1." and found[1].fingerprint == ""


@pytest.mark.parametrize(
    ("hints", "moment"),
    [
        ({"date": "20261130-101010"}, None),
        ({"began": "2026-11-30T10:10:10"}, None),
        ({"began": "2026-11-30T10:10:10Z", "ended": "2026-11-30T11:00:00Z"}, "2026-11-30T10:10:10+00:00"),
        ({"date": "2026-11-30T12:10:10+02:00"}, "2026-11-30T10:10:10+00:00"),
        ({"date": "yesterday", "host": "2026-11-30T12:10:10Z"}, None),
        ({"date": "0001-01-01T00:00:00+14:00"}, None),
    ],
)
def test_a_date_is_a_moment_where_it_names_its_zone(hints: dict[str, str], moment: str | None) -> None:
    found = moment_of(hints)
    assert (found and found.isoformat()) == moment


def test_a_page_says_when_a_file_came_and_that_nobody_says_when_it_was_measured(client: Any) -> None:
    client.force_login(make_person("root", is_superuser=True, is_staff=True))
    found = store(make_profile(), files=[{"name": "one.json", "sha256": "0"}])
    found.evidence["setting"]["hints"] = {"date": "20261130-101010"}
    found.save()
    page = client.get(reverse("measurement", args=[found.pk])).content.decode()
    assert "when it was measured is not said" in page and "2026-11-30 10:10:10, without a time zone" in page


def test_what_is_stored_says_what_it_takes_the_place_of_or_that_it_is_an_earlier_one() -> None:
    profile = make_profile()
    make_located(profile, 1)
    sweep = {"slo": SLO, "actor": None, "reason": "a try"}
    before = Origin(measured_at=timezone.now() - timedelta(days=2))
    _, warnings = measurement_store(profile, judged(), origin=before, **sweep)
    assert warnings[0].endswith("1 in flight (located) stays in force.") and planned(profile) == 1
    profile.measurements.filter(max_concurrency=2).delete()
    _, warnings = measurement_store(profile, judged(), **sweep)
    assert warnings == ["2 in flight (located) then takes the place of 1 in flight (located)."]


def test_command_and_api_say_first_what_it_would_take_the_place_of(client: Any, capsys: Any) -> None:
    client.force_login(make_person("root", is_superuser=True, is_staff=True))
    profile = make_profile()
    make_located(profile, 6)
    found = store(profile, *TRIAL)
    said = "2 in flight (at least) then takes the place of 6 in flight (located)."
    call_command("measurement_accept", str(found.pk), "--preview")
    assert capsys.readouterr().out == f"{said}\n" and planned(profile) == 6
    address = reverse("api-measurement-accept", args=[found.pk])
    answer = client.post(address, {"preview": True}, content_type="application/json").json()
    assert (answer["warnings"], answer["status"], planned(profile)) == ([said], "stale", 6)
    assert client.post(address, {}, content_type="application/json").status_code == 400
    answer = client.post(address, {"reason": "a small one will do"}, content_type="application/json").json()
    assert (answer["warnings"], answer["status"], planned(profile)) == ([said], "current", 2)


def test_the_preview_of_a_sweep_says_what_it_would_take_the_place_of() -> None:
    profile = make_profile()
    make_located(profile, 6)
    facts = Facts(run=BenchRun(profile=profile), levels=2, seconds=60, own=None, take=None, in_force=profile.measurements.get())
    (said,) = replaced_sentences(facts)
    assert said.startswith("What it gives takes the place of 6 in flight (located), unless it says less")
    assert replaced_sentences(replace(facts, run=BenchRun(profile=profile, endpoint="http://127.0.0.1:1"))) == []
    assert replaced_sentences(replace(facts, in_force=None)) == []
