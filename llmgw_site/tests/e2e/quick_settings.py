"""The product's own settings; only a lock of the database is given up sooner, so that a test of that needs no minute."""

from llmgw_site.settings import *  # noqa: F403

DATABASES["default"]["OPTIONS"]["timeout"] = 2  # noqa: F405
