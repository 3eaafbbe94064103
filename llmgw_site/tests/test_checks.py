"""System checks: each finds its fault, and is silent where there is none."""

from __future__ import annotations

import pytest

from llmgw_site import checks


def ids(messages: list) -> list[str]:
    return [message.id for message in messages]


def test_a_key_that_others_can_read_is_an_error(settings, tmp_path):
    settings.VAR = tmp_path
    assert checks.secrets_are_private() == []
    (tmp_path / "secret_key").touch(mode=0o600)
    assert checks.secrets_are_private() == []
    (tmp_path / "secret_key").chmod(0o640)
    assert ids(checks.secrets_are_private()) == ["llmgw.E001"]


@pytest.mark.parametrize(("scrape", "found"), [(5, []), (15, []), (16, ["llmgw.W002"])])
def test_loads_are_read_at_least_as_often_as_they_are_decided_by(settings, scrape, found):
    settings.SCRAPE_SECONDS, settings.PASS_SECONDS = scrape, 15
    assert ids(checks.intervals_fit()) == found


@pytest.mark.parametrize(
    ("hosts", "https", "found"),
    [
        (["localhost", "127.0.0.1", "[::1]"], False, []),
        (["localhost", "llm.example.org"], False, ["llmgw.W003"]),
        (["llm.example.org"], True, []),
        (["localhost", "127.8.9.1"], True, ["llmgw.W004"]),
    ],
)
def test_tls_goes_with_hosts_beyond_this_machine(settings, hosts, https, found):
    settings.ALLOWED_HOSTS, settings.SESSION_COOKIE_SECURE = hosts, https
    assert ids(checks.https_fits_the_hosts()) == found


@pytest.mark.parametrize(("hosts", "found"), [(["a.example"], []), (["*"], ["llmgw.W005"])])
def test_hosts_are_listed_by_name(settings, hosts, found):
    settings.ALLOWED_HOSTS = hosts
    assert ids(checks.hosts_are_named()) == found


@pytest.mark.parametrize(
    ("engine", "url", "found"),
    [
        ("django.db.backends.sqlite3", "redis://127.0.0.1:1/0", []),
        ("django.db.backends.sqlite3", "redis://:x@store.example:6379/0", ["llmgw.W006"]),
        ("django.db.backends.postgresql", "redis://store.example:6379/0", []),
    ],
)
def test_a_database_file_stays_on_the_host_of_its_redis(settings, monkeypatch, engine, url, found):
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", engine)
    settings.REDIS_URL = url
    assert ids(checks.sqlite_stays_on_one_host()) == found


def test_a_redis_that_throws_out_keys_is_an_error(settings, redis_server, redis_client):
    settings.REDIS_URL = redis_server
    redis_client.config_set("maxmemory-policy", "allkeys-lru")
    assert ids(checks.redis_throws_nothing_out()) == ["llmgw.E007"]
    redis_client.config_set("maxmemory-policy", "noeviction")
    assert checks.redis_throws_nothing_out() == []


def test_a_redis_that_is_away_is_no_finding_of_this_check(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert checks.redis_throws_nothing_out() == []


@pytest.mark.parametrize(
    ("engine", "named", "found"),
    [
        ("django.db.backends.sqlite3", "", []),
        ("django.db.backends.postgresql", "", ["llmgw.W011"]),
        ("django.db.backends.postgresql", "production", []),
    ],
)
def test_a_database_that_several_machines_can_reach_wants_a_named_installation(settings, monkeypatch, engine, named, found):
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", engine)
    monkeypatch.setattr(checks.env, "INSTALLATION_ID", named)
    assert ids(checks.installation_is_named()) == found


@pytest.mark.parametrize(("written", "found"), [("a-1", []), ("", ["llmgw.E012"]), ("two words", ["llmgw.E012"])])
def test_an_installations_id_is_a_name(settings, written, found):
    settings.INSTALLATION_ID = written
    assert ids(checks.installation_is_a_name()) == found


def test_an_installations_id_is_made_once_and_stays(monkeypatch, tmp_path):
    monkeypatch.setattr(checks.env, "INSTALLATION_ID", "")
    made = checks.env.installation_id(tmp_path / "var")
    assert checks.env.INSTALLATION.fullmatch(made)
    assert checks.env.installation_id(tmp_path / "var") == made
    assert [path.name for path in (tmp_path / "var").iterdir()] == ["installation-id"]
    assert checks.env.installation_id(tmp_path / "other") != made
    monkeypatch.setattr(checks.env, "INSTALLATION_ID", "production")
    assert checks.env.installation_id(tmp_path / "var") == "production"
