"""The replica's page says why there is no reading."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.urls import reverse

from capacity.sources.engines import Skipped
from capacity.sources.store import LoadStore
from capacity.tests.pages import make_fleet, make_person

pytestmark = pytest.mark.django_db


def test_why_the_last_reading_failed_is_said_and_ends_with_a_good_one(client, settings, redis_server, redis_client):
    settings.REDIS_URL = redis_server
    client.force_login(make_person("op", is_operator=True))
    replica = make_fleet().replicas[0]
    page = reverse("replica", args=[replica.name])
    assert "last reading" not in client.get(page).content.decode()
    LoadStore(redis_client).write(replica.pool.name, {replica.name: Skipped("It answered <html>.")}, datetime.now(UTC))
    assert "It answered &lt;html&gt;." in client.get(page).content.decode()


def test_redis_away_leaves_the_page_as_it_is(client):
    client.force_login(make_person("op", is_operator=True))
    replica = make_fleet().replicas[0]
    assert client.get(reverse("replica", args=[replica.name])).status_code == 200
