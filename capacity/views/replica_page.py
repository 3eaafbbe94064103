"""One replica: its state, where it runs, the end of its log, and what was done to it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from ..models import Action, Replica, Sample
from ..ports import Answer
from ..sources.answer_store import AnswerStore
from ..sources.store import Failure, LoadStore
from ..store import read_log, redis_client
from .board import threshold_percent
from .ended import ends_of
from .frame import frame_of
from .live import live
from .replica_rows import replica_rows

LOG_CHARACTERS = 20_000
ACTIONS_SHOWN = 50


@live
def replica_page(request: HttpRequest, name: str) -> HttpResponse:
    found = Replica.objects.visible_to(request.user).select_related("pool", "model__pool__settings", "model__scope", "profile")
    replica = frame_of(request).telling.row(get_object_or_404(found, name=name))
    sample = Sample.objects.filter(model=replica.model).order_by("-at").first()
    log = read_log(replica.name)
    context = {
        "replica": replica,
        "row": replica_rows([replica], sample, timezone.now())[0],
        "threshold": threshold_percent(replica.model),
        "failure": why_unread(replica),
        "silence": why_silent(replica),
        "log": log[-LOG_CHARACTERS:] if log else "",
        "actions": Action.objects.visible_to(request.user).filter(replica_name=replica.name)[:ACTIONS_SHOWN],
        "ends": ends_of([replica]),
        "place": "models",
    }
    return render(request, "pages/replica.html", context)


def why_unread(replica: Replica) -> Failure | None:
    """Why the last reading of its /metrics failed; None where it did not, or where nobody can tell."""
    failures = LoadStore(redis_client()).failures(replica.pool.name)
    return (failures or {}).get(replica.name)


def why_silent(replica: Replica) -> Answer | None:
    """Why a registered engine does not answer, and since when; None where it does, or where nobody can tell."""
    if not replica.is_registered or replica.gone_at:
        return None
    answer = (AnswerStore(redis_client()).answers(replica.pool.name) or {}).get(replica.name)
    return answer if answer and answer.failed_since else None
