"""The Celery application. One control queue, one scrape queue, and a queue of its own for each host."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmgw_site.settings")

app = Celery("llmgw")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()
app.autodiscover_tasks()
app.autodiscover_tasks(["capacity"], related_name="node_tasks")
