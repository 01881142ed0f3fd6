"""Addresses of brokers as people write them."""

import pytest

from ottla.base.errors import ConfigError
from ottla.client.bootstrap import Address, parse_bootstrap


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost", [Address("localhost", 9092)]),
        ("10.0.0.1:1", [Address("10.0.0.1", 1)]),
        ("[::1]:9093", [Address("::1", 9093)]),
        ("::1", [Address("::1", 9092)]),
        ("PLAINTEXT://broker:9094", [Address("broker", 9094)]),
        ("a:1, b:2 ,", [Address("a", 1), Address("b", 2)]),
    ],
)
def test_an_address_is_a_host_and_perhaps_a_port(text: str, addresses: list[Address]) -> None:
    """Ports default to Kafka's; IPv6 stands in brackets; several addresses stand between commas."""
    assert parse_bootstrap(text) == addresses


@pytest.mark.parametrize("text", ["", " , ", "host:", "host:x", "host:0", "host:70000", ":9092"])
def test_what_is_no_address_is_refused_by_name(text: str) -> None:
    """The error repeats the part that cannot be used."""
    with pytest.raises(ConfigError, match=r"names no broker|is no address"):
        parse_bootstrap(text)


def test_an_address_is_printed_as_it_is_written() -> None:
    """IPv6 keeps its brackets, so that the text can be used again."""
    assert [str(item) for item in parse_bootstrap("[::1]:1,a:2")] == ["[::1]:1", "a:2"]
