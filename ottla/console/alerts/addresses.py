"""The addresses that a channel may reach: server-side request forgery is refused.

A channel's address is entered in a browser, so that it could name a service that only this machine
reaches, such as a cloud's metadata service. Names are resolved here, every result is checked, and
the connection goes to the address that was checked. Private networks are allowed.
"""

import ipaddress
import socket
from collections.abc import Sequence

from ottla.base.errors import ConfigError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Networks that embed an IPv4 address in their last 32 bits: NAT64 and IPv4-compatible addresses.
_EMBEDDING = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))
# The metadata services of clouds whose addresses are in ordinary networks.
_METADATA = frozenset(
    ipaddress.ip_address(text) for text in ("fd00:ec2::254", "100.100.100.200", "168.63.129.16")
)
_SIX_TO_FOUR = ipaddress.ip_network("2002::/16")


class Forbidden(ConfigError):
    """A channel may not reach an address."""


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Return the networks of a configuration file; ConfigError for a malformed one."""
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        raise ConfigError(f"allowed_networks: {error}; write 127.0.0.0/8 or 10.1.2.3/32") from None


def resolve(host: str, port: int, allowed: Sequence[Network]) -> str:
    """Return the IP address of a host; Forbidden if any of its addresses must not be reached.

    OSError if the name cannot be resolved.
    """
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [ipaddress.ip_address(str(row[4][0]).partition("%")[0]) for row in rows]
    for address in addresses:
        if not is_allowed(address, allowed):
            raise Forbidden(
                f"{host} is {address}, a loopback, link-local or reserved address: channels may "
                "reach it only if allowed_networks in console.toml has it"
            )
    return str(addresses[0])


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """Return True if a channel may reach an address. Pure."""
    return any(address in network for network in allowed) or not any(
        _is_special(part) for part in _parts(address)
    )


def _parts(address: Address) -> list[Address]:
    """Return an address with the IPv4 addresses that it embeds."""
    parts: list[Address] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            parts.append(address.ipv4_mapped)
        if any(address in network for network in _EMBEDDING):
            parts.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address in _SIX_TO_FOUR:
            parts.append(ipaddress.IPv4Address(int(address) >> 80 & 0xFFFFFFFF))
    return parts


def _is_special(address: Address) -> bool:
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address.is_reserved
        or address in _METADATA
    )
