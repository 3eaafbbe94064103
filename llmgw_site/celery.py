"""The Celery application. One control queue, one scrape queue, and a queue of its own for each host."""

from __future__ import annotations

import os
import warnings
from datetime import timedelta
from typing import Any

from celery import Celery
from celery.platforms import SecurityWarning
from celery.signals import beat_init

# hosts' workers may have to be root, and tasks are JSON: what Celery warns of (pickle as root) cannot be
warnings.filterwarnings("ignore", category=SecurityWarning)

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
