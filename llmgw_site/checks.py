"""System checks: settings that contradict each other or their surroundings. Those of a real installation run with --deploy."""

from __future__ import annotations

import ipaddress
import stat
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from llmgw_site import env

REDIS_TIMEOUT_SECONDS = 2
SAFE_POLICY = "noeviction"


@register(Tags.security)
def secrets_are_private(**_: Any) -> list[CheckMessage]:
    """Files that hold keys are the owner's alone."""
    return [
        Error(f"{path} can be read by other users of this machine.", hint=f"chmod 600 {path}", id="llmgw.E001")
        for path in (settings.VAR / "secret_key", settings.VAR / "redis" / "url", settings.VAR / "redis" / "password")
        if is_shared(path)
    ]


@register()
def intervals_fit(**_: Any) -> list[CheckMessage]:
    """Loads must not be older than the passes that decide by them."""
    if settings.SCRAPE_SECONDS <= settings.PASS_SECONDS:
        return []
    sentence = f"LLMGW_SCRAPE_SECONDS ({settings.SCRAPE_SECONDS}) is above LLMGW_PASS_SECONDS ({settings.PASS_SECONDS})."
    return [Warning(sentence, hint="Passes would decide twice by one reading: scrape at least as often.", id="llmgw.W002")]


@register(Tags.security, deploy=True)
def https_fits_the_hosts(**_: Any) -> list[CheckMessage]:
    """Passwords and tokens cross a network only encrypted, and a redirect to TLS leads somewhere."""
    beyond = [host for host in settings.ALLOWED_HOSTS if not is_loopback(host)]
    if beyond and not settings.SESSION_COOKIE_SECURE:
        sentence = f"The site answers to {', '.join(beyond)} without TLS: passwords and tokens can be read on the way."
        return [Warning(sentence, hint="Put a proxy with TLS before it and set LLMGW_HTTPS=true.", id="llmgw.W003")]
    if not beyond and settings.SESSION_COOKIE_SECURE:
        sentence = "LLMGW_HTTPS is on, and the site answers to loopback names alone: nothing there speaks TLS."
        return [Warning(sentence, hint="Name the public host in LLMGW_HOSTS, or leave LLMGW_HTTPS off.", id="llmgw.W004")]
    return []


@register(Tags.security, deploy=True)
def hosts_are_named(**_: Any) -> list[CheckMessage]:
    """A site that answers to every name can be made to write links to another's."""
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [Warning("LLMGW_HOSTS allows every name.", hint="List the names under which people reach it.", id="llmgw.W005")]


@register(deploy=True)
def installation_is_named(**_: Any) -> list[CheckMessage]:
    """Workers on several machines are one installation only where they all say so."""
    if env.INSTALLATION_ID or "sqlite" in settings.DATABASES["default"]["ENGINE"]:
        return []
    sentence = "LLMGW_INSTALLATION_ID is not set: web and workers on another machine would only advise."
    hint = f"Set LLMGW_INSTALLATION_ID={settings.INSTALLATION_ID} on each machine, or keep all of them on this one."
    return [Warning(sentence, hint=hint, id="llmgw.W011")]


@register()
def installation_is_a_name(**_: Any) -> list[CheckMessage]:
    """It stands in the names of queues and on each host: a file that was cut or edited by hand is named here."""
    if env.INSTALLATION.fullmatch(settings.INSTALLATION_ID):
        return []
    sentence = f"The installation's id in {settings.VAR / 'installation-id'} is not 1 to 64 letters, digits and . _ -."
    return [Error(sentence, hint="Put the former one back; a new one needs manage.py take_over.", id="llmgw.E012")]


@register(Tags.database, deploy=True)
def sqlite_stays_on_one_host(**_: Any) -> list[CheckMessage]:
    """Another host that shares Redis but not the file would be a second control plane."""
    if "sqlite" not in settings.DATABASES["default"]["ENGINE"] or is_loopback(urlsplit(settings.REDIS_URL).hostname or ""):
        return []
    sentence = "The database is a file of this host, and Redis is on another: web, worker and beat must all stay on this one."
    return [Warning(sentence, hint="Set DATABASE_URL to a PostgreSQL before starting any of them elsewhere.", id="llmgw.W006")]


@register(deploy=True)
def redis_throws_nothing_out(**_: Any) -> list[CheckMessage]:
    """The broker's queues and the hosts' reports must not be evicted when memory is short. Silent where Redis is away."""
    policy = eviction_policy(settings.REDIS_URL)
    if policy in (None, SAFE_POLICY):
        return []
    hint = f"Set maxmemory-policy {SAFE_POLICY} on that server."
    return [Error(f"Redis throws out keys when its memory is full (maxmemory-policy {policy}).", hint=hint, id="llmgw.E007")]


def eviction_policy(url: str) -> str | None:
    """The server's policy; None where it cannot be asked (away, or the command is renamed or forbidden)."""
    client = redis.Redis.from_url(
        url, socket_timeout=REDIS_TIMEOUT_SECONDS, socket_connect_timeout=REDIS_TIMEOUT_SECONDS, decode_responses=True
    )
    try:
        return dict(client.config_get("maxmemory-policy")).get("maxmemory-policy")
    except redis.RedisError:
        return None
    finally:
        client.close()


def is_shared(path: Path) -> bool:
    """Whether the file can be read by others than its owner. A file that is not there is not."""
    try:
        return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except OSError:
        return False


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's alone: `localhost`, 127.0.0.0/8, [::1]."""
    bare = host.strip("[]")
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return bare == "localhost" or bare.endswith(".localhost")
