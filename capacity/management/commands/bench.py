"""Measures a profile: a sweep that runs in this process, with a line for each level."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from capacity import services
from capacity.api.sweeps import run_document
from capacity.briefings.sweep_facts import document, facts_of, sentences_of
from capacity.measuring import life, tokens, worker
from capacity.measuring.wish import Wish
from capacity.models import BenchRun, Profile
from capacity.services.sweeps import write
from quotas.command import OperatorCommand, needed, wrong_call
from quotas.services import exclusive

EXITS = {BenchRun.State.DONE: 0, BenchRun.State.FAILED: 1, BenchRun.State.STOPPED: 3}


OPTIONS = frozenset({"levels", "seconds", "input_tokens", "output_tokens", "api", "where", "served_name", "token"})
"""What is wrong with these is wrong with the call, whatever the installation holds."""


def returncode(error: ValidationError) -> int:
    return 2 if hasattr(error, "error_dict") and OPTIONS & error.error_dict.keys() else 1


@contextmanager
def without_log_lines() -> Iterator[None]:
    """What workers log is for collectors of logs; here a person reads along. A defect's trace is still written."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        yield
    finally:
        logging.disable(before)


class Command(OperatorCommand):
    help = (
        "Sweeps a profile and stores the measurement. It runs here; Ctrl-C stops it and gives the replica back. "
        "Exit status 0: measured or nothing to measure by; 1: refused or failed; 2: a wrong call; 3: stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("model")
        parser.add_argument("profile")
        parser.add_argument("--endpoint", default="", help="Sweep this address outside of the fleet.")
        parser.add_argument("--served-name", default="", help="What --endpoint calls the model, where that is another name.")
        parser.add_argument("--slo", default="", help="An SLO's name, or bounds: 'ttft p95 500, tpot p95 50'. Else the model's.")
        parser.add_argument("--levels", default="auto", help="Such as 1,2,4,8; auto searches the limit.")
        parser.add_argument("--seconds", type=int, default=60, help="Of each level, warm-up apart.")
        parser.add_argument("--input", type=int, dest="input_tokens", help="Input tokens of a request; else the model's, or 512.")
        parser.add_argument("--output", type=int, dest="output_tokens", help="Output tokens; else the model's, or 128.")
        parser.add_argument("--api", default="chat", choices=BenchRun.Api.values)
        parser.add_argument("--same-prompt", action="store_true", help="Each request sends one prompt: the prefix cache counts.")
        parser.add_argument("--token-file", type=Path, metavar="FILE", help="A file with the bearer token for --endpoint.")
        parser.add_argument("--take-last", action="store_true", help="With --take: the only ready replica of the model too.")
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--own", action="store_const", const="own", dest="where", help="A replica is started for it (usual).")
        where.add_argument("--take", action="store_const", const="take", dest="where", help="A replica that runs is taken.")
        parser.add_argument("--reason", default="", help="Why; kept with the measurement. Needed unless --preview.")
        parser.add_argument("--preview", action="store_true", help="Say what it would take, and change nothing.")
        parser.add_argument("--json", action="store_true", help="As one JSON document.")

    def handle(self, *args: Any, **options: Any) -> None:
        profile = self.profile(options["model"], options["profile"])
        names = ("endpoint", "slo", "levels", "seconds", "input_tokens", "output_tokens", "api", "same_prompt", "take_last")
        names += ("served_name",)
        token = self.token(options["token_file"])
        wish = Wish(**{name: options[name] for name in names}, where=options["where"] or "own", token=token)
        reason = "a preview" if options["preview"] else needed(options["reason"])
        try:
            run = services.bench_prepare(profile, wish, actor=None, reason=reason, now=datetime.now(UTC))
            if options["preview"]:
                self.preview(run, as_json=options["json"])
                return
            self.begin(run)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages), returncode=returncode(error)) from None
        self.carry(run, token, as_json=options["json"])

    @staticmethod
    def token(path: Path | None) -> str:
        try:
            return "" if path is None else tokens.read(path)
        except ValueError as fault:
            raise wrong_call(f"--token-file {fault}") from None

    def profile(self, model: str, name: str) -> Profile:
        rows = Profile.objects.select_related("model__slo", "model__pool__settings")
        found = rows.filter(model__name=model, name=name).first()
        if found is None:
            raise CommandError(f"There is no profile “{name}” of a model “{model}”.")
        return found

    def preview(self, run: BenchRun, *, as_json: bool) -> None:
        facts = facts_of(run, datetime.now(UTC))
        if as_json:
            self.stdout.write(json.dumps(document(facts), ensure_ascii=False))
            return
        for sentence in sentences_of(facts):
            self.stdout.write(sentence)

    @staticmethod
    def begin(run: BenchRun) -> None:
        """This process's own from the start: no worker takes it."""
        run.state = life.first_state(run)
        run.started_at = run.heartbeat_at = datetime.now(UTC)
        with exclusive():
            write(run)

    def carry(self, run: BenchRun, token: str, *, as_json: bool) -> None:
        say = self.stderr.write if as_json else self.stdout.write
        try:
            with without_log_lines(), worker.ends_noted() as ending:
                life.carry(run, worker.means(ending, say=say, token=lambda run: token))
        except KeyboardInterrupt:
            run.refresh_from_db()
        if as_json:
            self.stdout.write(json.dumps(run_document(run), ensure_ascii=False))
        elif run.state == BenchRun.State.DONE:
            self.stdout.write(self.result(run))
        if run.state != BenchRun.State.DONE:
            raise CommandError(f"Sweep {run.pk}: {run.message}", returncode=EXITS.get(run.state, 1))

    @staticmethod
    def result(run: BenchRun) -> str:
        found = run.measurement
        if found is None:
            return run.message
        return f"{run.profile}: {found.max_concurrency} in flight, {found.tokens_per_second:.1f} tokens/s. {run.message}"
