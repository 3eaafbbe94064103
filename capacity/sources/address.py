"""Which addresses an endpoint may have: never those where a cloud hands out credentials, and nothing that is not one host.

Checked twice: where a person registers a URL, and at every connection on the address that the name resolved to and that is then
connected to, so that a name whose answer changes in between (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import SplitResult, parse_qsl, urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_URL_CHARACTERS = 2_000
LOOKUP_SECONDS = 3.0

REFUSED_NETWORKS: tuple[tuple[Network, str], ...] = tuple(
    (ipaddress.ip_network(network), what)
    for network, what in (
        ("169.254.0.0/16", "link-local"),
        ("fe80::/10", "link-local"),
        ("fd00:ec2::/32", "a cloud's metadata service"),
        ("fd20:ce::/32", "a cloud's metadata service"),
        ("100.100.100.200/32", "a cloud's metadata service"),
        ("192.0.0.192/32", "a cloud's metadata service"),
        ("168.63.129.16/32", "a cloud's metadata service"),
        ("0.0.0.0/8", "no host's address"),
        ("::/128", "no host's address"),
        ("224.0.0.0/4", "a multicast address"),
        ("ff00::/8", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)
_SECRETS = re.compile(r"token|secret|passw|credential|signature|auth|api_?-?key|(^|[_-])(key|sig|pwd)$", re.IGNORECASE)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

# Own threads: a name server that hangs must not be waited for when an event loop closes, as its default executor's would be.
_LOOKUPS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="lookup")

Lookup = Callable[[str, int], Iterable[str]]


class RefusedAddress(OSError):
    """The name resolves to an address that is refused; the text is a sentence for the operator."""


def address_fault(address: str, allowed: Sequence[Network] = ()) -> str | None:
    """Why an IP address is refused, as a sentence, or None. IPv4 inside IPv6 is judged as the IPv4 that it reaches."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if any(parsed in network for network in allowed):
        return None
    for candidate in (parsed, *_embedded(parsed)):
        for network, what in REFUSED_NETWORKS:
            if candidate in network:
                return f"The address {parsed} is refused: it is {what}."
    return None


def url_fault(url: str, allowed: Sequence[Network] = (), lookup: Lookup | None = None) -> str | None:
    """Why a person's endpoint URL is refused, as a sentence, or None.

    A name that resolves now is judged by all its addresses; one that does not, within LOOKUP_SECONDS, is accepted (the host may
    come up later) and is judged whenever it is read."""
    parts = _split(url)
    if isinstance(parts, str):
        return parts
    host = parts.hostname or ""
    try:
        addresses = [*_LOOKUPS.submit(lookup or _lookup, host, parts.port or 0).result(LOOKUP_SECONDS)]
    except (OSError, UnicodeError):  # TimeoutError is an OSError
        return None
    return next((fault for address in addresses if (fault := address_fault(address, allowed))), None)


def metrics_url(url: str) -> str:
    """An engine's /metrics from its base URL, with or without the `/v1` of its API; `?model=…` of a router stays behind it."""
    path, mark, query = url.partition("?")
    base = path.rstrip("/")
    return (base if base.endswith("/metrics") else f"{base.removesuffix('/v1')}/metrics") + mark + query


class CheckedResolver(AbstractResolver):
    """Resolves names for aiohttp, which connects to exactly the addresses that are returned here, or not at all."""

    def __init__(self, allowed: Sequence[Network] = (), lookup: Lookup | None = None) -> None:
        self._allowed = allowed
        self._lookup = lookup or _lookup

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        addresses = [*await loop.run_in_executor(_LOOKUPS, self._lookup, host, port)]
        for address in addresses:
            if fault := address_fault(address, self._allowed):
                raise RefusedAddress(fault)
        return [_result(host, port, address) for address in addresses]

    async def close(self) -> None:
        """Nothing is held."""


def literal_fault(host: str, allowed: Sequence[Network] = ()) -> str | None:
    """As `address_fault` for a host written as an address, which no resolver is asked about; None for a name."""
    try:
        return address_fault(host, allowed)
    except ValueError:
        return None


def text_fault(url: str, allowed: Sequence[Network] = ()) -> str | None:
    """What can be said against an endpoint's URL without asking a name server, as a sentence, or None."""
    parts = _split(url)
    return parts if isinstance(parts, str) else literal_fault(parts.hostname or "", allowed)


def _split(url: str) -> SplitResult | str:
    if len(url) > MAX_URL_CHARACTERS or any(character.isspace() or not character.isprintable() for character in url):
        return f"An endpoint's URL is at most {MAX_URL_CHARACTERS} characters long and has no spaces."
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return "This is not a URL."
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "An endpoint's URL starts with http:// or https:// and names a host."
    if parts.username is not None or parts.password is not None:
        return "An endpoint's URL must not carry a user or a password."
    if parts.fragment or any(_SECRETS.search(name) for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
        return "An endpoint's URL must not carry a token or a key, nor a part behind #: pages and gateways show it as it is."
    return parts


def _embedded(address: Address) -> tuple[Address, ...]:
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64 or int(address) >> 32 == 0:  # ::a.b.c.d, the old IPv4-compatible form
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address != ipaddress.ip_address("::1") else None)
    return tuple(found for found in inner if found is not None)


def _lookup(host: str, port: int) -> list[str]:
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [*dict.fromkeys(str(row[4][0]) for row in rows)]


def _result(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=flags)
