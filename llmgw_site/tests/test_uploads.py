"""Bodies beyond what is read are refused in one sentence, on pages and by the API, before a byte of them is kept."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from capacity.bench.imports import MOST_FILES
from capacity.importing import LARGEST_UPLOAD
from capacity.tests.api_people import person
from capacity.tests.pages import make_person

pytestmark = pytest.mark.django_db
API = "/api/v1/measurements/import"
BODY = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nnothing\r\n--x--\r\n'


def files(count: int) -> list[SimpleUploadedFile]:
    return [SimpleUploadedFile("run.json", b"") for _ in range(count)]


def send(client: Any, path: str, length: str) -> Any:
    return client.generic("POST", path, BODY, content_type="multipart/form-data; boundary=x", CONTENT_LENGTH=length)


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(make_person("oscar", is_operator=True))
    return client


def test_so_many_files_may_be_sent_as_an_import_reads() -> None:
    assert settings.DATA_UPLOAD_MAX_NUMBER_FILES == MOST_FILES


def test_more_files_than_are_read_are_refused_by_page_and_api(operator: Client) -> None:
    said = f"At most {MOST_FILES} files are read at once."
    page = operator.post(reverse("measurements_import"), {"file": files(MOST_FILES + 1)})
    assert (page.status_code, said in page.content.decode()) == (400, True)
    answer = person("olga", is_operator=True).post(API, {"file": files(MOST_FILES + 1)}, format="multipart")
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["message"]) == (413, "too_large", said)


@pytest.mark.parametrize("path", ["/measurements/import/", "/login/"])
def test_a_body_that_says_it_is_too_large_is_not_taken_in_by_any_page(operator: Client, path: str) -> None:
    page = send(operator if path != "/login/" else Client(), path, str(LARGEST_UPLOAD * 2))
    assert (page.status_code, "larger than what is read at once" in page.content.decode()) == (400, True)


@pytest.mark.parametrize(
    ("length", "status"), [(str(LARGEST_UPLOAD * 2), 413), ("9" * 30, 413), ("abc", 400), ("-5", 400), ("1", 400), ("", 400)]
)
def test_a_length_that_is_none_is_no_fault_of_the_api(length: str, status: int) -> None:
    answer = send(person("olga", is_operator=True), API, length)
    assert (answer.status_code, set(answer.json())) == (status, {"error"})
