"""Which addresses a web tool may connect to: public ones, and private ones that are allowed by name.

RL_CLI_ALLOW_ADDRESSES is a list of networks and single addresses, each with or without a port, such as
"10.1.0.0/16, 127.0.0.1:8080, [::1]:8080". A name is resolved once, here, and what is connected to is the
address that was checked, so that a name server cannot give another one later.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
from urllib.parse import urlsplit

from rl_cli.core.errors import BadUsage
from tools.dispatcher import ToolError

ALLOW = "RL_CLI_ALLOW_ADDRESSES"
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NAT64 = ipaddress.ip_network("64:ff9b::/96")
UNICAST = ipaddress.ip_network("2000::/3")
"""All of IPv6 that is given to anybody; NAT64 stands for IPv4."""
SPECIAL = [
    ipaddress.ip_network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
        *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4"),
        *("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
    )
]
"""IANA's registries of special-purpose addresses, and multicast; Python's own list is older."""
RESOLVE_SECONDS = 10.0


class PrivateAddress(Exception):
    """A host is not a public one, and was not allowed."""


class NoAddress(Exception):
    """A host has no address."""


def check_url(url: str) -> None:
    """Raises ToolError where it is no address of a web page."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ToolError("invalid_url", f"{url[:200]} is no web address", "it begins with http:// or https://")


async def check_reachable(url: str) -> None:
    """Raises ToolError where a web address is none, or may not be connected to."""
    check_url(url)
    parts = urlsplit(url)
    try:
        await checked_addresses(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    except (PrivateAddress, NoAddress) as error:
        raise tool_error(error) from error


def tool_error(error: PrivateAddress | NoAddress) -> ToolError:
    kind = "private_address" if isinstance(error, PrivateAddress) else "unreachable"
    return ToolError(kind, str(error))


async def checked_addresses(host: str, port: int) -> list[str]:
    """The addresses of a host, all of which may be connected to.

    Raises:
        PrivateAddress: One of them may not.
        NoAddress: There is none.
        BadUsage: RL_CLI_ALLOW_ADDRESSES cannot be read.
    """
    allowed, loop = allowed_networks(), asyncio.get_running_loop()
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await loop.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # no such name, or no answer in time
        raise NoAddress(f"{host} cannot be found: {error or 'no answer'}") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        if not may_connect(address, port, allowed):
            what = host if host.strip("[]") == address else f"{host} is at {address}, which"
            raise PrivateAddress(f"{what} is not a public address (the variable {ALLOW} allows some)")
    return addresses


def may_connect(
    address: str, port: int, allowed: list[tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, int]]
) -> bool:
    """Whether an address is public, or private and allowed."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if _is_public(_meant(parsed)):
        return True
    return any(
        network.version == each.version and each in network and allowed_port in (0, port)
        for network, allowed_port in allowed
        for each in (parsed, _meant(parsed))
    )


def allowed_networks() -> list[tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, int]]:
    """Networks and ports (0: any) of RL_CLI_ALLOW_ADDRESSES.

    Raises:
        BadUsage: An entry of it is none.
    """
    return [_network(entry.strip()) for entry in os.environ.get(ALLOW, "").split(",") if entry.strip()]


def _network(entry: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, int]:
    network, port = entry, "0"
    if entry.startswith("["):
        network, _, rest = entry[1:].partition("]")
        port = rest.removeprefix(":") or "0"
    elif entry.count(":") == 1:
        network, _, port = entry.partition(":")
    try:
        return ipaddress.ip_network(network), int(port)
    except ValueError as error:
        raise BadUsage(f"{ALLOW}: {error}", "write it like 10.1.0.0/16, 127.0.0.1:8080") from error


def _meant(address: Address) -> Address:
    """The IPv4 address inside one that is a way to write or reach it; else the address."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in UNICAST:
        return False
    return not any(address in network for network in SPECIAL if network.version == address.version)
