"""Measuring a profile: what it would take, the start, and a run's page with its progress and a button that stops it."""

from __future__ import annotations

import shlex
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from quotas.services.rows import LONGEST_REASON

from .. import services
from ..briefings.sweep_facts import (
    Facts,
    asked_sentences,
    facts_of,
    last_sentence,
    minutes,
    own_sentence,
    place_sentence,
    replaced_sentences,
    take_sentence,
)
from ..domain.measurement.slo_text import slo_text
from ..measuring.document import doubts, read_progress, read_stages
from ..measuring.tokens import LONGEST
from ..measuring.wish import USUAL_INPUT, USUAL_OUTPUT, Wish, slo_of
from ..models import BenchRun, LanguageModel, Profile, Slo
from ..slo_rows import slo_of_row
from ..sweep_charts import sweep_figure
from ..sweep_rows import stage_rows
from .live import live
from .measurement_page import curve_of

WHERE = [("own", "a replica of its own"), ("take", "one that runs")]
POLL_SECONDS = 2
SILENT = timedelta(seconds=15)


class MeasureForm(forms.Form):
    where = forms.ChoiceField(choices=WHERE, initial="own", widget=forms.RadioSelect)
    slo = forms.CharField(max_length=200, required=False)
    levels = forms.CharField(max_length=500, initial="auto")
    seconds = forms.IntegerField(initial=60)
    input_tokens = forms.IntegerField()
    output_tokens = forms.IntegerField()
    api = forms.ChoiceField(choices=BenchRun.Api.choices, initial="chat")
    endpoint = forms.CharField(max_length=500, required=False)
    served_name = forms.CharField(max_length=200, required=False)
    token = forms.CharField(max_length=LONGEST, required=False, widget=forms.PasswordInput)
    same_prompt = forms.BooleanField(required=False)
    take_last = forms.BooleanField(required=False)
    reason = forms.CharField(max_length=LONGEST_REASON, required=False)

    def wish(self) -> Wish:
        return Wish(**{name: value for name, value in self.cleaned_data.items() if name != "reason"})

    def show(self, error: ValidationError) -> None:
        for field, sentences in error.message_dict.items() if hasattr(error, "error_dict") else [("", error.messages)]:
            self.add_error(field if field in self.fields else None, sentences)


@sensitive_post_parameters("token")
def measure(request: HttpRequest, pk: int) -> HttpResponse:
    """GET says what the usual sweep would take; POST looks at another (`act=look`) or starts it."""
    found = Profile.objects.visible_to(request.user).select_related("model__slo", "model__pool__settings")  # type: ignore[misc]
    profile = get_object_or_404(found, pk=pk)
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators measure profiles.")
    usual = initial(profile)
    form = MeasureForm(request.POST if request.method == "POST" else {**usual, "where": request.GET.get("where") or "own"})
    starts = request.method == "POST" and request.POST.get("act") != "look"
    facts, run = asked(request, profile, form, starts=starts)
    if run is not None:
        messages.success(request, f"The sweep of {profile} is queued.")
        return redirect("sweep", run.pk)
    is_usual = facts is None
    if is_usual:
        facts, _ = asked(request, profile, MeasureForm({**usual, "where": "own"}), starts=False)
    context = {
        "profile": profile,
        "form": form,
        "is_usual": is_usual,
        "facts": facts,
        "sentences": [*asked_sentences(facts), *replaced_sentences(facts)] if facts else [],
        "own": own_sentence(facts) if facts else "",
        "take": take_sentence(facts) if facts else "",
        "last": last_sentence(facts) if facts and facts.take and facts.take.is_last else "",
        "outside": place_sentence(facts) if facts and facts.run.endpoint else "",
        "duration": minutes(facts.seconds) if facts else "",
        "slos": Slo.objects.order_by("name"),
        "open": BenchRun.objects.open().filter(profile=profile).first(),
        "command": command_of(facts.run) if facts else "",
        "longest": LONGEST_REASON,
        "has_slo": has_slo(profile.model),
        "place": "measurements",
    }
    return render(request, "pages/measure.html", context, status=400 if form.errors and request.method == "POST" else 200)


def has_slo(model: LanguageModel) -> bool:
    """Whether it has bounds that a sweep could be judged by."""
    return model.slo is not None and slo_of_row(model.slo) is not None


def initial(profile: Profile) -> dict[str, Any]:
    model = profile.model
    return {
        "slo": model.slo.name if model.slo else "",
        "levels": "auto",
        "seconds": 60,
        "input_tokens": model.input_tokens or USUAL_INPUT,
        "output_tokens": model.output_tokens or USUAL_OUTPUT,
        "api": "chat",
    }


def asked(request: HttpRequest, profile: Profile, form: MeasureForm, *, starts: bool) -> tuple[Facts | None, BenchRun | None]:
    """What the form's sweep would take, and the run where it was started; refusals stand at the form."""
    if not form.is_valid():
        return None, None
    now, reason = timezone.now(), form.cleaned_data["reason"]
    wish, actor = form.wish(), request.user
    try:
        looked = services.bench_prepare(profile, wish, actor=actor, reason=reason if starts else "a look", now=now)  # type: ignore[arg-type]
        if starts:
            return None, services.bench_start(profile, wish, actor=actor, reason=reason, now=now)  # type: ignore[arg-type]
    except ValidationError as error:
        form.show(error)
    # a start that nobody has confirmed says what it takes
    return (None if form.errors and "take_last" not in form.errors else facts_of(looked, now)), None


def command_of(run: BenchRun) -> str:
    """The same as a command."""
    words = ["manage.py", "bench", run.profile.model.name, run.profile.name]
    words += ["--endpoint", run.endpoint] if run.endpoint else ["--own" if run.own_replica else "--take"]
    words += ["--slo", run.slo_text or (run.slo.name if run.slo else ""), "--levels", run.levels, "--seconds", str(run.seconds)]
    words += ["--input", str(run.input_tokens), "--output", str(run.output_tokens), "--api", run.api]
    words += ["--same-prompt"] if run.same_prompt else []
    words += ["--served-name", run.served_name] if run.served_name else []
    words += ["--token-file", "FILE"] if run.with_token else []
    words += ["--take-last"] if run.take_last and not (run.endpoint or run.own_replica) else []
    words += ["--reason", "…"]
    return " ".join(word if word == "…" else shlex.quote(word) for word in words)


@live
def sweep(request: HttpRequest, pk: int) -> HttpResponse:
    """A run's page. What moves is asked for anew every two seconds while it is open (`?part`)."""
    run = seen_run(request, pk)
    is_open = run.state in BenchRun.OPEN
    stages, progress = read_stages(run.stages), read_progress(run.progress)
    context = {
        "run": run,
        "is_open": is_open,
        # while it runs they stand as they come
        "stages": stages if is_open else sorted(stages, key=rising),
        "progress": progress,
        "slo_text": slo_text(slo) if (slo := slo_of(run)) else "",
        "doubts": doubts(stages),
        "is_unheard": is_open and is_unheard(run),
        "left": minutes(progress["seconds_left"]) if progress.get("seconds_left") else "",
        "share": share_of(progress),
        "poll_seconds": POLL_SECONDS,
        "place": "measurements",
    }
    if "part" in request.GET:
        response = render(request, "parts/sweep.html", context)
    else:
        response = render(request, "pages/sweep.html", context | {"figure": figure_of(run)})
    add_never_cache_headers(response)
    return response


def figure_of(run: BenchRun) -> dict[str, Any] | None:
    """The chart of the measurement that it gave; before there is one the table says how far it is."""
    found = run.measurement
    rows = stage_rows(found.evidence) if found else []
    return sweep_figure([curve_of(found, rows)]) if found and rows else None


def is_unheard(run: BenchRun) -> bool:
    """Its worker writes every few seconds: after several of them it may be gone."""
    return run.heartbeat_at is not None and timezone.now() - run.heartbeat_at > SILENT


def rising(stage: dict[str, Any]) -> tuple[bool, float]:
    """Those whose level is not known come last."""
    level = stage.get("level")
    return level is None, level or 0


def share_of(progress: dict[str, Any]) -> int | None:
    """Levels that are over of all that are likely, in per cent; None where that is not known."""
    done, left = progress.get("levels_done"), progress.get("levels_left")
    return None if done is None or left is None or not done + left else round(100 * done / (done + left))


@require_POST
def sweep_stop(request: HttpRequest, pk: int) -> HttpResponse:
    run = seen_run(request, pk)
    if not request.user.may_operate:  # type: ignore[union-attr]
        raise PermissionDenied("Operators stop sweeps.")
    try:
        services.bench_stop(run, actor=request.user, now=timezone.now())  # type: ignore[arg-type]
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    return redirect("sweep", run.pk)


def seen_run(request: HttpRequest, pk: int) -> BenchRun:
    rows = BenchRun.objects.visible_to(request.user)  # type: ignore[misc]
    related = ("profile__model__slo", "replica", "slo", "measurement__profile__model")
    return get_object_or_404(rows.select_related(*related), pk=pk)
