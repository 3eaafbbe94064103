"""`manage.py up`: start everything under one supervisor."""

import os
import sys
from typing import Any

from django.core.management.base import CommandParser

from llmgw_site.supervisor.options import add_arguments
from quotas.command import OperatorCommand


class Command(OperatorCommand):
    help = "Start Redis, web, worker, beat and this host's node worker under one supervisor; Ctrl-C ends all of them."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        arguments = ["--port", str(options["port"]), "--host", options["host"], "--demo" if options["demo"] else "--no-demo"]
        arguments += ["--llama"] if options["llama"] else []
        # it becomes the supervisor, which needs none of the memory that Django takes
        os.execv(sys.executable, [sys.executable, "-m", "llmgw_site.supervisor", *arguments])  # noqa: S606
