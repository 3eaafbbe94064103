"""What a first start makes, and a later one leaves alone."""

from __future__ import annotations

import re

import pytest
from django.core.management import call_command

from capacity import example
from llmgw_site.management.commands import prepare
from quotas.models import Pool, User
from quotas.services import service_account

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def state(settings, tmp_path):
    settings.VAR = tmp_path
    return tmp_path


def pools() -> set[str]:
    return set(Pool.objects.values_list("name", flat=True))


def test_an_empty_database_gets_the_default_pool_and_the_example():
    prepare.first_rows(demo=True)
    assert pools() == {"default", "example"}
    assert example.exists()


def test_without_the_example_it_starts_empty():
    prepare.first_rows(demo=False)
    assert pools() == {"default"}


def test_an_example_that_was_removed_does_not_come_back():
    prepare.first_rows(demo=True)
    example.remove()
    prepare.first_rows(demo=True)
    assert pools() == {"default"}


def test_a_default_pool_that_was_renamed_is_not_made_again():
    prepare.first_rows(demo=False)
    Pool.objects.filter(name="default").update(name="mine")
    prepare.first_rows(demo=True)
    assert pools() == {"mine"}


def test_a_crash_between_example_and_default_pool_is_made_good():
    example.seed()
    prepare.first_rows(demo=True)
    assert pools() == {"default", "example"}


def test_the_first_admin_has_the_password_that_is_printed_and_must_change_it(client):
    password = prepare.first_admin()
    admin = User.objects.get(username="admin")
    assert admin.check_password(password)
    assert admin.must_change_password
    assert admin.is_superuser
    assert admin.is_staff


def test_where_a_person_is_no_admin_is_made():
    service_account("gateway")
    assert prepare.first_admin()
    assert prepare.first_admin() is None


def test_static_files_are_collected_again_only_when_one_changed(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path / "static"
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"}
    }
    prepare.collect_static()
    manifest = settings.STATIC_ROOT / "staticfiles.json"
    first = manifest.stat().st_mtime_ns
    prepare.collect_static()
    assert manifest.stat().st_mtime_ns == first
    (tmp_path / "static.stamp").write_text("another")
    prepare.collect_static()
    assert manifest.stat().st_mtime_ns > first


def test_the_command_prints_the_password_on_the_first_run_alone(settings, capsys, monkeypatch):
    monkeypatch.setattr(prepare, "collect_static", lambda: None)
    call_command("prepare", demo=False)
    assert re.search(r"user admin, password \S{16} ", capsys.readouterr().out)
    call_command("prepare", demo=False)
    assert capsys.readouterr().out == ""
