"""`manage.py model_target`: what a demand takes. With --snapshot it needs no Django, no database and no Redis."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, TextIO

from capacity.command_line import OneLineParser, one_sentence
from capacity.domain import InvalidSnapshot, loads, parse_snapshot
from capacity.domain.sizing import EXITS, Answer, Question, WrongQuestion, question_of, target, target_document, target_table
from capacity.domain.sizing.cost import Cost
from capacity.domain.sizing.question import KEYS, NUMBERS
from capacity.domain.types import Snapshot
from quotas.refusals import in_lines

WRONG = 1
"""Exit status of a wrong use and of an invalid snapshot: 2 would read as an answer."""
HELP = (
    "Says what it takes for a model to serve a demand, in the room and the limits there are. "
    "Exit status 0: fits; 2: in part; 3: not at all; 4: not known; 1: wrong use or an invalid snapshot."
)


_DEMANDS = re.compile(rf"\b({'|'.join(key for key in NUMBERS if '_' in key or key == 'users')})\b")


class Refused(Exception):
    """Nothing can be answered: one sentence, or one line a fault."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Demand, exactly one, and options: the words of a question."""
    add = parser.add_argument
    add("model", metavar="MODEL")
    add("--tokens-per-second", metavar="N", help="Demand: output tokens a second.")
    add("--requests-per-second", metavar="N", help="Demand: requests a second; needs --output-tokens.")
    add("--in-flight", metavar="N", help="Demand: requests in flight at once.")
    add("--users", metavar="N", help="Demand: users; needs --requests-per-user-day and --output-tokens.")
    add("--requests-per-user-day", metavar="R", help="Requests of one user a day.")
    add("--hours", metavar="H", help="Hours of the day in which they come (8).")
    add("--peak", metavar="P", help="The busiest moment, as a multiple of the mean (2).")
    add("--output-tokens", metavar="M", help="Output tokens of a request.")
    add("--scope", metavar="SCOPE", help="Whose limits bind what is added, instead of the model's own scope.")
    add("--headroom", metavar="SHARE", help="How much more than asked is covered: 20%% or 0.2 (0%%).")
    add("--spare", metavar="K", help="Replicas beyond what covers it (0).")
    add(
        "--room", metavar="WHICH", help="now, reclaim (what the scope is entitled to), or total (as if no other model ran) (now)."
    )
    add("--profile", metavar="NAME", action="append", help="Only this profile is started; repeat it for several.")
    add("--stale", metavar="HOW", help="What stale evidence counts: exclude, use, or derate:0.8 (exclude).")
    add("--tight", action="store_true", help="Also with the last replica replaced by the smallest that does.")
    add(
        "--snapshot",
        metavar="FILE",
        help="Answer for this snapshot, - for stdin, instead of the live fleet; nothing else is read.",
    )
    add("--json", action="store_true", dest="as_json", help="As llmgw.target/1.")


class _Parser(OneLineParser):
    def error(self, message: str) -> NoReturn:
        refuse(message)


def refuse(message: str) -> NoReturn:
    """End with one sentence and the status of a wrong use."""
    sys.stderr.write(f"{one_sentence(message)}\n")
    sys.exit(WRONG)


def run(argv: Sequence[str]) -> int:
    """The whole command for a snapshot from a file; the exit status."""
    parser = _Parser(prog="manage.py model_target", description=HELP)
    arguments(parser)
    options = vars(parser.parse_args(argv))
    try:
        answer = from_file(options)
    except Refused as refused:
        write(sys.stderr, in_lines(str(refused)))
        return WRONG
    return printed(answer, options["as_json"], sys.stdout)


def asked(options: dict[str, Any]) -> Question:
    """The question of a command line. Raises `Refused`."""
    try:
        return question_of({key: options.get(key) for key in KEYS if options.get(key) not in (None, False)})
    except WrongQuestion as wrong:
        raise Refused(in_words_of_options(wrong)) from None


def in_words_of_options(wrong: WrongQuestion) -> str:
    """A sentence about keys as one about options."""
    return _DEMANDS.sub(lambda found: f"--{found[0].replace('_', '-')}", wrong.sentence)


def from_file(options: dict[str, Any]) -> Answer:
    """Raises `Refused` where the question, the file or the snapshot is wrong."""
    question = asked(options)
    snapshot = read(options["snapshot"])
    try:
        return target(snapshot, options["model"], question)
    except WrongQuestion as wrong:
        raise Refused(in_words_of_options(wrong)) from None


def read(file: str) -> Snapshot:
    try:
        if file == "-":
            text = sys.stdin.buffer.read()
        else:
            with open(file, "rb") as opened:
                text = opened.read()
        return parse_snapshot(loads(text))
    except OSError as error:
        raise Refused(f"{file}: {error.strerror or error}") from None
    except InvalidSnapshot as invalid:
        raise Refused("\n".join(f"{fault.path}: {fault.message}" for fault in invalid.faults)) from None


def printed(
    answer: Answer, as_json: bool, stdout: TextIO, cost: Cost | None = None, cost_note: str = "", inputs: Any = None
) -> int:
    """Print the answer; the exit status that says the verdict."""
    if as_json:
        write(stdout, json.dumps(target_document(answer, cost, cost_note, inputs), indent=1, ensure_ascii=False))
    else:
        write(stdout, in_lines(target_table(answer, cost, cost_note)))
    return EXITS[answer.verdict]


def write(stream: TextIO, text: str) -> None:
    """Text in whatever the stream can show; what it cannot is escaped. Whoever reads may have read enough."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
    except BrokenPipeError:
        return
