"""What the design promises of a host: its worker's end is no engine's end, and reaching Redis is not running commands."""

from __future__ import annotations

import configparser
from dataclasses import fields
from pathlib import Path

from capacity.drivers.wire import order_to_json
from capacity.ports import Order

UNIT = Path(__file__).resolve().parents[2] / "docs" / "deploy" / "llmgw-node.service"

SAYS_WHICH = {"op", "pool", "generation", "replica", "model", "profile", "nodes", "installation", "taken_over_at_generation"}
SAYS_WHAT_IT_TAKES = {"resource", "units", "fingerprint", "start_timeout_seconds", "drain_timeout_seconds"}


def test_the_shipped_unit_ends_its_worker_alone_and_starts_it_again():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    assert (service["KillMode"], service["OOMPolicy"], service["Restart"]) == ("process", "continue", "always")
    assert "--end-engines-on-stop" not in service["ExecStart"]
    assert not {"ExecStop", "ExecStopPost", "RuntimeMaxSec"} & set(service)


def test_an_order_says_how_to_run_an_engine_by_a_templates_name_and_values_alone():
    names = {field.name for field in fields(Order)}
    assert names - SAYS_WHICH - SAYS_WHAT_IT_TAKES == {"template", "parameters"}
    order = Order(op="start", pool="p", generation=1, replica="r", model="m", profile="x", nodes=("n",), resource="sim", units=1)
    assert set(order_to_json(order)) == names
