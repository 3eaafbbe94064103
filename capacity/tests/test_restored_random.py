"""A copy, an older backup and another's pool act on nothing, whatever happens to the fleet and whatever people edit meanwhile."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from capacity.models import Action, LanguageModel, Lease, Node, Profile
from capacity.ports import Order
from capacity.tests.fleet import Fleet

pytestmark = pytest.mark.django_db
IMPATIENT = {"down_window_seconds": 30, "reclaim": True, "unready_grace_seconds": 30, "start_timeout_seconds": 60}


class Recorder:
    """The fleet, and whatever it was told."""

    def __init__(self, fake: Any) -> None:
        self._fake = fake
        self.orders: list[Order] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fake, name)

    def apply(self, order: Order) -> Any:
        self.orders.append(order)
        return self._fake.apply(order)


def some_fleet(dice: Random) -> Fleet:
    units, least = dice.choice([4, 8, 40]), dice.randint(1, 5)
    fleet = Fleet(units=units, min_replicas=least, settings=IMPATIENT, mode=dice.choice(["auto", "add_only"]))
    for _ in range(dice.randint(2, 6)):
        if fleet.names("ready"):
            fleet.share(dice.randint(0, 60))
        fleet.passes(1)
    return fleet


def something_happens(fleet: Fleet, dice: Random) -> None:
    happens = dice.choice(["kill", "hang", "edit", "cordon", "retire", "load", "load"])
    for name in fleet.names("ready"):
        if happens == "kill" and dice.random() < 0.5:
            fleet.fake.kill(name)
        elif happens == "hang":
            fleet.fake.hang(name)
    if happens == "edit":
        LanguageModel.objects.update(min_replicas=dice.randint(0, 3), mode=dice.choice(["auto", "add_only"]))
    elif happens == "cordon":
        Node.objects.update(schedulable=dice.random() < 0.5)
    elif happens == "retire":
        Profile.objects.update(state=dice.choice(["active", "no_new", "retire"]))
    elif fleet.names("ready"):
        fleet.share(dice.randint(0, 100))


@pytest.mark.parametrize("kind", ["copy", "older", "anothers"])
@pytest.mark.parametrize("seed", range(5))
def test_what_was_not_taken_over_acts_on_nothing(kind, seed):
    dice = Random(f"{kind} {seed}")
    fleet = some_fleet(dice)
    recorder, before = Recorder(fleet.fake), Action.objects.exclude(state="advice").count()
    seen = max(report.generation for report in fleet.fake.observe("p") or ())
    assert seen > 0
    if kind == "older":
        Lease.objects.update(generation=dice.randint(0, seen - 1))
    elif kind == "anothers":
        Lease.objects.update(installation="another")
    deps = fleet.make_deps(driver=recorder, **({"installation": "the copy"} if kind == "copy" else {}))
    for _ in range(12):
        something_happens(fleet, dice)
        fleet.fake.advance(15)
        assert fleet.a_pass(deps).outcome == "done"
    assert recorder.orders == []
    assert Action.objects.exclude(state="advice").count() == before
