"""`manage.py prepare`: bring the state folder to where the site can start. Doing it again changes nothing."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

ADMIN = "admin"
DEFAULT_POOL = "default"


class Command(BaseCommand):
    help = "Collect static files, migrate, and on the first run make the default pool, an admin and (--demo) the example."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--demo", action="store_true", help="start the example when the database is empty")
        parser.add_argument("--no-demo", dest="demo", action="store_false")
        parser.add_argument("--llama", action="store_true", help="write the example with real llama.cpp engines")

    def handle(self, *args: Any, **options: Any) -> None:
        collect_static()
        call_command("migrate", verbosity=0, interactive=False)
        try:
            first_rows(demo=options["demo"])
            if options["llama"]:
                self.llama()
            password = first_admin()
        except ValidationError as refused:
            raise CommandError(" ".join(refused.messages)) from refused
        if password:
            self.stdout.write(
                f"First login: user {ADMIN}, password {password}   (shown this once; it must be changed at the first login)"
            )

    def llama(self) -> None:
        from capacity import example

        if not example.exists(example.LLAMA):
            self.stdout.write("Reading what one llama.cpp replica serves on this machine: a minute, this once …")
            self.stdout.flush()
        example.seed(which=example.LLAMA)


def collect_static() -> None:
    """Collect and compress the static files where any differs from what was collected last."""
    root = Path(settings.STATIC_ROOT)
    stamp = root.parent / "static.stamp"
    sources = sources_digest()
    if stamp.exists() and stamp.read_text() == sources and (root / "staticfiles.json").exists():
        return
    stamp.unlink(missing_ok=True)
    call_command("collectstatic", verbosity=0, interactive=False, clear=root.exists())
    stamp.write_text(sources)


def sources_digest() -> str:
    """A digest of all static files where they come from: path, size and time."""
    rows = []
    for finder in get_finders():
        for path, storage in finder.list([]):
            found = Path(storage.path(path)).stat()
            rows.append((path, found.st_size, found.st_mtime_ns))
    return hashlib.sha256(repr((settings.STORAGES["staticfiles"], sorted(rows))).encode()).hexdigest()


def first_rows(*, demo: bool) -> None:
    """The default pool, and before it the example where the database is empty: a crash in between is made good next time."""
    from capacity import example
    from capacity.services import pool_create
    from quotas.models import Pool

    if not Pool.objects.exists():
        if demo:
            example.seed()
        pool_create(DEFAULT_POOL, actor=None, reason="first run")
    elif not Pool.objects.filter(is_example=False).exists() and example.exists():
        pool_create(DEFAULT_POOL, actor=None, reason="first run")
    for which in example.EXAMPLES.values():
        example.follow(which=which)


def first_admin() -> str | None:
    """Make an admin where there is no person yet; his password, which is stored nowhere."""
    from quotas.models import User
    from quotas.services import user_save

    if User.objects.filter(is_service=False).exists():
        return None
    password = secrets.token_urlsafe(12)
    user = User(username=ADMIN, is_staff=True, is_superuser=True, must_change_password=True)
    user.set_password(password)
    user_save(user, actor=None, reason="first run")
    return password
