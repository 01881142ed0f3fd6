"""Addresses of brokers as users write them."""

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
        ("9093", [Address("127.0.0.1", 9093)]),
        ("a:1, b:2 ,", [Address("a", 1), Address("b", 2)]),
    ],
)
def test_address_is_a_host_with_an_optional_port(text: str, addresses: list[Address]) -> None:
    """The default port is Kafka's; a number alone is a port of this machine."""
    assert parse_bootstrap(text) == addresses


@pytest.mark.parametrize(
    "text",
    [
        "",
        " , ",
        "host:",
        "host:x",
        "host:0",
        "host:70000",
        ":9092",
        "[::1",
        "*",
        "a/b",
        "h:\u0663",
        "70000",
    ],
)
def test_invalid_address_is_rejected(text: str) -> None:
    """The error repeats the invalid part."""
    with pytest.raises(ConfigError, match=r"names no broker|is not an address"):
        parse_bootstrap(text)


def test_an_address_is_printed_as_it_is_written() -> None:
    """IPv6 keeps its brackets, so that the text can be parsed again."""
    assert [str(item) for item in parse_bootstrap("[::1]:1,a:2")] == ["[::1]:1", "a:2"]
