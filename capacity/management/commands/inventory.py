"""`manage.py inventory FILE|-`: hardware as a tool prints it → devices and classes; with --node they are typed into a node."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from capacity import services
from capacity.briefings.inventory_file import document, in_words, lines
from capacity.models import Node
from capacity.node.hardware import MOST_BYTES, Host, Reading, Unreadable, read
from quotas.command import OperatorCommand, wrong_call
from quotas.forms import sentences
from quotas.models import Pool


class Command(OperatorCommand):
    help = (
        "Prints the devices and classes of what nvidia-smi, rocm-smi --json, kubectl get nodes, DCGM exporter or "
        "nvidia_gpu_exporter print. Exit status 2: it is none of these, or broken."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="A file, or - for stdin.")
        parser.add_argument("--node", metavar="NAME", help="Type the GPU classes into this node's resources.")
        parser.add_argument("--pool", help="The node's pool, where it is to be made.")
        parser.add_argument("--preview", action="store_true", help="Say what would be typed in; write nothing.")
        parser.add_argument("--json", action="store_true", dest="as_json", help="Print llmgw.inventory/1.")
        parser.add_argument("--reason", help="Why; kept in the history. Needed with --node.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["node"] and not options["preview"] and not options["reason"]:
            raise wrong_call("Say why with --reason, or look first with --preview.")
        try:
            reading = read(content_of(options["file"]))
        except Unreadable as error:
            raise CommandError(f"{options['file']}: {error}", returncode=2) from error
        written = self.typed_in(reading, options) if options["node"] else None
        self.say(reading, written, as_json=options["as_json"])

    def typed_in(self, reading: Reading, options: dict[str, Any]) -> dict[str, Any]:
        """What became of the node, or would: its units before and after, and what the service warned of."""
        host = host_for(reading, options["node"])
        node = node_for(options["node"], options["pool"])
        before, pk = dict(node.resources), node.pk
        try:
            warnings = self.write(node, host, options)
        except ValidationError as error:
            raise CommandError(" ".join(sentences(error)), returncode=2) from error
        return {
            "node": node.name,
            "is_new": pk is None,
            "before": before,
            "after": dict(node.resources),
            "warnings": warnings,
            "written": not options["preview"],
        }

    def write(self, node: Node, host: Host, options: dict[str, Any]) -> list[str]:
        if options["preview"]:
            return services.node_resources_preview(node, host.units)
        return services.node_resources(node, host.units, actor=None, reason=options["reason"])

    def say(self, reading: Reading, written: dict[str, Any] | None, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({**document(reading), "node": written}, ensure_ascii=False, indent=1))
            return
        for line in lines(reading):
            self.stdout.write(line)
        if written:
            will = "has" if written["written"] else "would have"
            self.stdout.write(f"{written['node']} {will} {in_words(written['after'])}, before {in_words(written['before'])}.")
            for warning in written["warnings"]:
                self.stdout.write(f"! {warning}")


def content_of(name: str) -> bytes:
    """At most one byte more than is read of a file, so that a huge one is not held."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(MOST_BYTES + 1)
        with open(name, "rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror or error}.", returncode=2) from error


def host_for(reading: Reading, name: str) -> Host:
    """The host of that name, or the only one where the text names none."""
    found = [host for host in reading.hosts if host.name == name or not host.name]
    if len(found) == 1:
        return found[0]
    names = ", ".join(host.name for host in reading.hosts[:5])
    raise CommandError(f"The file has no host {name}; it has {names}{' …' if len(reading.hosts) > 5 else ''}.", returncode=2)


def node_for(name: str, pool: str | None) -> Node:
    """The node that is written down, or a new one of the pool."""
    node = Node.objects.select_related("pool").filter(name=name).first()
    if node is not None:
        if pool and node.pool.name != pool:
            raise CommandError(f"{name} belongs to the pool {node.pool}, not to {pool}.", returncode=2)
        return node
    if not pool:
        raise CommandError(f"There is no node {name}: name the pool that it is to be made in with --pool.", returncode=2)
    found = Pool.objects.filter(name=pool).first()
    if found is None:
        raise CommandError(f"There is no pool “{pool}”.", returncode=2)
    return Node(name=name, pool=found)
