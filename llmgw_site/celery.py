"""The Celery application. One control queue, one scrape queue, and a queue of its own for each host."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from celery import Celery
from celery.signals import beat_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "llmgw_site.settings")

app = Celery("llmgw")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()
app.autodiscover_tasks()
app.autodiscover_tasks(["capacity"], related_name="node_tasks")


@beat_init.connect
def begin_at_once(sender: Any, **_: Any) -> None:
    """Everything is due when beat starts: nobody waits a whole interval for the first pass."""
    for entry in sender.scheduler.schedule.values():
        entry.last_run_at -= timedelta(days=1)
