"""The addresses that a channel may reach, in every spelling."""

import ipaddress
import socket
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.console.alerts.addresses import Forbidden, is_allowed, parse_networks, resolve


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fd00:ec2::254",
        "100.100.100.200",
    ],
)
def test_special_addresses_are_forbidden(text: str) -> None:
    """Loopback, link-local, multicast and reserved addresses, metadata services, and IPv6 addresses
    that embed them.
    """
    assert not is_allowed(ipaddress.ip_address(text), ())


@pytest.mark.parametrize("text", ["10.1.2.3", "192.168.1.1", "93.184.216.34", "2606:4700::1111"])
def test_other_addresses_are_allowed(text: str) -> None:
    """Also addresses of private networks, where many receivers are."""
    assert is_allowed(ipaddress.ip_address(text), ())


def test_the_configuration_allows_networks() -> None:
    """Only what it names."""
    allowed = parse_networks(["127.0.0.1/32", "::1/128"])
    assert is_allowed(ipaddress.ip_address("127.0.0.1"), allowed)
    assert not is_allowed(ipaddress.ip_address("127.0.0.2"), allowed)
    with pytest.raises(ConfigError, match="allowed_networks"):
        parse_networks(["localhost"])


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "localhost"])
def test_a_name_is_checked_by_its_addresses(host: str) -> None:
    """Numbers that the resolver reads as an address are no way around."""
    with pytest.raises(Forbidden):
        resolve(host, 80, ())


def test_one_forbidden_address_of_a_name_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with a public and a local address could be connected to either."""

    def both(*_: Any, **__: Any) -> list[Any]:
        rows = ("93.184.216.34", "127.0.0.1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (row, 80)) for row in rows]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with pytest.raises(Forbidden):
        resolve("rebinding.example", 80, ())
