"""What a person types after `manage.py node`, checked: each fault is one sentence."""

from __future__ import annotations

import argparse
import ipaddress
import re

_NODE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}")
_CLASS = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", type=node_name, metavar="NAME", help="this host's name in its pool; its queue is node.NAME")
    parser.add_argument("--pool", required=True, help="the pool that this host belongs to")
    parser.add_argument(
        "--resource", type=resource, action="append", default=[], metavar="CLASS=UNITS",
        help="offer units of a class that has no devices (cpu=0 offers no cores); may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--no-devices", action="store_true", help="offer none of this machine's GPUs: another worker on it does, or nobody"
    )
    parser.add_argument("--label", type=label, action="append", default=[], metavar="KEY=VALUE", help="may be repeated")
    parser.add_argument("--templates", metavar="FILE", help="the administrator's runtime templates, beside the built-in one")
    parser.add_argument("--state", metavar="DIR", help="where replicas are remembered (default var/node/NAME)")
    parser.add_argument("--address", type=address, default="127.0.0.1", help="engines listen here (default 127.0.0.1)")
    parser.add_argument("--ports", type=ports, default=range(20000, 21000), metavar="FROM-TO", help="default 20000-20999")
    parser.add_argument(
        "--end-engines-on-stop", action="store_true", help="end this host's engines when the worker is stopped (default: never)"
    )


def node_name(text: str) -> str:
    """A name that can stand in a queue's and a folder's name."""
    if not _NODE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"a node's name has 1 to 63 letters, digits and . _ -, not {text[:70]!r}.")
    return text


def resource(text: str) -> tuple[str, int]:
    """ "sim=16" → ("sim", 16)."""
    name, _, units = text.partition("=")
    if not _CLASS.fullmatch(name) or not (units.isascii() and units.isdigit()) or not 0 <= int(units[:10]) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"a resource is CLASS=UNITS, as in sim=16 (at most 1000000), not {text[:70]!r}.")
    if name.split("/")[0] == "gpu":
        raise argparse.ArgumentTypeError(f"GPUs are counted, not typed in; leave {text[:70]!r} out.")
    return name, int(units)


def label(text: str) -> tuple[str, str]:
    """ "zone=a" → ("zone", "a")."""
    key, equals, value = text.partition("=")
    if not _LABEL.fullmatch(key) or not equals or len(value) > 200 or not value.isprintable():
        raise argparse.ArgumentTypeError(f"a label is KEY=VALUE, as in zone=a, not {text[:70]!r}.")
    return key, value


def address(text: str) -> str:
    """An IP address of this host."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"an address is an IP address of this host, not {text[:70]!r}.") from None


def ports(text: str) -> range:
    """ "20000-20999" → range(20000, 21000)."""
    found = re.fullmatch(r"([0-9]{1,5})-([0-9]{1,5})", text)
    if not found or not 1024 <= int(found[1]) <= int(found[2]) <= 65_535:
        raise argparse.ArgumentTypeError(f"ports are FROM-TO within 1024-65535, as in 20000-20999, not {text[:70]!r}.")
    return range(int(found[1]), int(found[2]) + 1)
