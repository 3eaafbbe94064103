"""Settings of the tests: an own state folder that goes afterwards, plain static files, quick password hashes."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

STATE = tempfile.mkdtemp(prefix="llmgw-test-")
atexit.register(shutil.rmtree, STATE, ignore_errors=True)
# before the settings are read: tests never touch a person's var/ nor his servers
os.environ["LLMGW_VAR"] = STATE
Path(STATE, "installation-id").write_text("tests\n")
os.environ["LLMGW_LOG_LEVEL"] = "ERROR"
# nobody listens there: a test that wants Redis asks for the fixture `redis_server`
os.environ["REDIS_URL"] = "redis://127.0.0.1:1/0"

from .settings import *  # noqa: E402, F403

STATIC_ROOT = None
MIDDLEWARE = [name for name in MIDDLEWARE if "whitenoise" not in name]  # noqa: F405
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# a view that is read in a thread of its own leaves no connection behind, which would keep the test database from going
DATABASES["default"]["CONN_MAX_AGE"] = 0  # noqa: F405
