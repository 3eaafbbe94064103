"""The frame of the site: health needs no login, everything else does."""

import pytest


@pytest.mark.django_db
def test_health_answers_without_a_login(client):
    assert client.get("/healthz").status_code == 200


@pytest.mark.django_db
def test_a_page_sends_a_stranger_to_the_login(client):
    response = client.get("/")
    assert response.status_code == 302
    assert response["Location"].startswith("/login/")


def test_redis_fixture(redis_client):
    assert redis_client.ping()
