"""Broker addresses as users write them: `localhost`, `10.0.0.1:9092`, `[::1]:9092`, `a:1,b:2`.

A number alone is a port of this machine: `9093` is `127.0.0.1:9093`.
"""

import re
from typing import NamedTuple

from ottla.base.errors import ConfigError

DEFAULT_PORT = 9092
# What no name and no address has. Some resolvers take * for this machine.
_OTHER = re.compile(r"[\s/@*?#\[\]]")
_PORT = re.compile("[0-9]{1,5}")
_LOOPBACK = "127.0.0.1"
DEFAULT_BOOTSTRAP = f"{_LOOPBACK}:{DEFAULT_PORT}"


class Address(NamedTuple):
    """A host name or address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return the address as text, IPv6 in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(text: str) -> list[Address]:
    """Return the addresses of a comma-separated list; ConfigError names the invalid part."""
    addresses = [_parse_address(part.strip()) for part in text.split(",") if part.strip()]
    if not addresses:
        raise ConfigError(f"{text!r} names no broker: write host:port, as in {DEFAULT_BOOTSTRAP}")
    return addresses


def bootstrap_text(text: str) -> str:
    """Return the addresses of a list with hosts and ports, as librdkafka reads them."""
    return ",".join(map(str, parse_bootstrap(text)))


def _parse_address(text: str) -> Address:
    # Kafka's configuration writes a protocol before the address.
    bare = text.rpartition("://")[2]
    host, port = (_LOOPBACK, bare) if bare.isdecimal() else (bare, "")
    if bare.startswith("["):
        host, bracket, suffix = bare[1:].partition("]")
        if not bracket:
            raise ConfigError(f"{text!r} is not an address: write ] after {host!r}")
        port = suffix.removeprefix(":")
    elif bare.count(":") == 1:
        host, _, port = bare.partition(":")
        if not port:
            raise ConfigError(f"{text!r} is not an address: the port after the colon is missing")
    if port and not (_PORT.fullmatch(port) and 0 < int(port) < 65536):
        raise ConfigError(f"{text!r} is not an address: {port!r} is not a port from 1 to 65535")
    if not host or _OTHER.search(host):
        raise ConfigError(f"{text!r} is not an address: write host:port, as in {DEFAULT_BOOTSTRAP}")
    return Address(host, int(port or DEFAULT_PORT))
