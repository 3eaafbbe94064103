"""`manage.py endpoint_add URL --model M --profile P --node N`: registers an engine that runs already."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from capacity import services
from capacity.models import LanguageModel, Profile, Replica
from capacity.sources.look import Look
from quotas.command import OperatorCommand, needed
from quotas.forms import sentences


class Command(OperatorCommand):
    help = "Registers a running engine: seen, counted, charted and routed to; never stopped from here."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", help="Where it serves, such as http://10.0.0.7:8000/v1.")
        parser.add_argument("--model", required=True, help="The model that it serves.")
        parser.add_argument("--profile", required=True, help="The model's profile that says what it takes.")
        parser.add_argument("--node", required=True, action="append", dest="nodes", help="Its host; once for each of several.")
        parser.add_argument("--devices", default="", help="Its devices' ids, with commas between, as the host names them.")
        parser.add_argument("--name", default="", help="Its name here; made from the model's where none is given.")
        parser.add_argument("--reason", default="", help="Why; kept in the history. Needed but for --preview.")
        parser.add_argument("--preview", action="store_true", help="Say what is read there; write nothing.")
        parser.add_argument("--json", action="store_true", dest="as_json", help="Print an object: name, state, warnings.")

    def handle(self, *, url: str, model: str, profile: str, as_json: bool, reason: str, preview: bool, **given: Any) -> None:
        try:
            devices = [device.strip() for device in given["devices"].split(",") if device.strip()]
            engine = Replica(url=url, nodes=given["nodes"], devices=devices, name=given["name"])
            engine.model, engine.profile = found(model, profile)
            if preview:
                look, warnings = services.endpoint_preview(engine)
                return self.say({"preview": asdict(look), "warnings": warnings}, SEEN.format(**told(look)), as_json)
            warnings = services.endpoint_add(engine, actor=None, reason=needed(reason))
        except ValidationError as error:
            raise CommandError(" ".join(sentences(error))) from error
        said = {"name": engine.name, "state": engine.state, "warnings": warnings}
        return self.say(said, f"{engine.name} is registered and {engine.state}.", as_json)

    def say(self, document: dict[str, Any], sentence: str, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(document, ensure_ascii=False))
            return
        self.stdout.write(sentence)
        for warning in document["warnings"]:
            self.stderr.write(warning)


SEEN = "It {answers}; in flight: {in_flight}; it serves: {serves}. Nothing was registered."


def told(look: Look) -> dict[str, Any]:
    return {
        "answers": "does not answer" if look.silence else "answers",
        "in_flight": "unknown" if look.in_flight is None else look.in_flight,
        "serves": "it does not say" if look.serves is None else ", ".join(look.serves) or "no model",
    }


def found(model: str, profile: str) -> tuple[LanguageModel, Profile]:
    row = LanguageModel.objects.select_related("pool").filter(name=model).first()
    if row is None:
        raise ValidationError({"model": f"There is no model “{model}”."})
    of_model = Profile.objects.filter(model=row, name=profile).first()
    if of_model is None:
        raise ValidationError({"profile": f"{row} has no profile “{profile}”."})
    return row, of_model
