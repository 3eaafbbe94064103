"""The product's own settings; only a lock of the database is given up, and a sweep that nobody carries is noticed, sooner."""

from llmgw_site.settings import *  # noqa: F403

DATABASES["default"]["OPTIONS"]["timeout"] = 2  # noqa: F405
CELERY_BEAT_SCHEDULE["sweeps"]["schedule"] = 1  # noqa: F405
# pages are asked for here without what `prepare` collects
STORAGES = {
    **STORAGES,  # noqa: F405
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
