"""Not found, not allowed and broken are pages of their own, with the request's id."""

from __future__ import annotations

import pytest
from django.test import RequestFactory

from llmgw_site.views import broken


@pytest.mark.django_db
def test_an_unknown_address_is_a_page_of_its_own(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("alice"))
    page = client.get("/models/nobody/", headers={"X-Request-Id": "an-id-of-mine"})
    assert page.status_code == 404
    assert "Not found" in page.content.decode()
    assert "an-id-of-mine" in page.content.decode()


def test_a_fault_has_a_page_that_asks_no_store():
    request = RequestFactory().get("/")
    request.request_id = "an-id-of-mine"
    page = broken(request)
    assert page.status_code == 500
    assert "an-id-of-mine" in page.content.decode()
