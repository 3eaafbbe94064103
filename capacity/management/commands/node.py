"""`manage.py node NAME --pool POOL`: this host's worker. Engines outlive it; it never touches the database."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from capacity.drivers.wire import queue_of
from capacity.node import options
from capacity.node.agent import NodeAgent
from capacity.node.flights import in_flight
from capacity.node.inventory import Hardware
from capacity.node.orders import Identity
from capacity.node.record import AnotherWorker, Store
from capacity.node.reporter import Reporter, said_already
from capacity.node.serving import serve
from capacity.node.start import Place
from capacity.node.templates import InvalidTemplates, template_source
from capacity.store import redis_client
from quotas.command import OperatorCommand


class Command(OperatorCommand):
    help = "Run this host's node worker: start, watch, drain and report engines of one pool."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        options.add_arguments(parser)

    def handle(self, **given: Any) -> None:
        agent = _agent(given)
        stop = threading.Event()
        thread = threading.Thread(target=agent.run, args=(stop,), name="node-agent")
        logging.getLogger("celery.worker.consumer.consumer").addFilter(said_already)
        serve(agent)
        thread.start()
        try:
            current_app.worker_main(_worker_arguments(given["name"]))
        finally:
            serve(None)
            stop.set()
            agent.wake()
            thread.join()
            if given["end_engines_on_stop"]:
                agent.end_all(threading.Event().wait)
            agent.close()


def _worker_arguments(name: str) -> list[str]:
    # Celery would run Django's checks, of which some ask the database, and that may be far from this host.
    # One thread: orders are done in the order they came, so that none is refused for a later one that overtook it.
    return [
        "--quiet", "--skip-checks", "worker", "--pool", "threads", "--concurrency", "1", "--queues", queue_of(name),
        "--hostname", f"node@{name}", "--without-gossip", "--without-mingle", "--loglevel", "WARNING",
    ]  # fmt: skip


def hardware_of(given: dict[str, Any]) -> Hardware:
    typed = dict(given["resource"])
    return Hardware(typed=typed, gpus=list, amd=list) if given["no_devices"] else Hardware(typed=typed)


def _agent(given: dict[str, Any]) -> NodeAgent:
    name = given["name"]
    templates = template_source(Path(given["templates"]) if given["templates"] else None)
    try:
        templates()
        store = Store(Path(given["state"] or settings.VAR / "node" / name).absolute())
        return NodeAgent(
            identity=Identity(node=name, pool=given["pool"], labels=dict(given["label"])),
            store=store,
            templates=templates,
            hardware=hardware_of(given),
            place=Place(address=given["address"], ports=given["ports"]),
            reporter=Reporter(redis_client()),
            in_flight=in_flight,
        )
    except (InvalidTemplates, AnotherWorker, ValueError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be used: {error.strerror}.") from error
