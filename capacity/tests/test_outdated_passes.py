"""What a profile is now against what its replicas were started with, over passes."""

from __future__ import annotations

import pytest

from capacity.fingerprints import run_print
from capacity.models import Profile, Replica
from capacity.tests.fleet import Fleet

pytestmark = pytest.mark.django_db


def edited(fleet: Fleet, **fields: object) -> Profile:
    Profile.objects.filter(pk=fleet.profile.pk).update(**fields)
    return Profile.objects.get(pk=fleet.profile.pk)


def running() -> dict[str, str]:
    rows = Replica.objects.filter(gone_at__isnull=True)
    return dict(rows.values_list("name", "fingerprint"))


def test_an_upgraded_profile_has_its_replicas_replaced_one_after_another() -> None:
    fleet = Fleet(min_replicas=2)
    fleet.passes(2)
    old = running()
    assert set(old.values()) == {run_print(fleet.profile, "chat")}
    profile = edited(fleet, engine_version="0.11")
    for _ in range(12):
        fleet.passes(1)
        assert len(fleet.names("ready")) >= 2
    assert not set(old) & set(running())
    assert set(running().values()) == {run_print(profile, "chat")} and len(running()) == 2


def test_nothing_moves_while_replacing_is_paused_or_where_nobody_knows_what_a_replica_runs() -> None:
    fleet = Fleet(min_replicas=2)
    fleet.passes(2)
    old = running()
    edited(fleet, engine_version="0.11", replacing_paused=True)
    fleet.passes(3)
    assert running() == old
    edited(fleet, replacing_paused=False)
    Replica.objects.update(fingerprint="")
    fleet.passes(3)
    assert set(running()) == set(old)
