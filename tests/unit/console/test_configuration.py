"""The file console.toml: absent, right, and wrong."""

import ipaddress
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.console.configuration import FILE_NAME, check_address, read_configuration


def test_allowed_networks_of_the_file(tmp_path: Path) -> None:
    """Without a file the list is empty."""
    assert read_configuration(tmp_path).allowed_networks == ()
    (tmp_path / FILE_NAME).write_text('[alerts]\nallowed_networks = ["127.0.0.0/8"]\n')
    assert read_configuration(tmp_path).allowed_networks == (ipaddress.ip_network("127.0.0.0/8"),)


@pytest.mark.parametrize(
    "text",
    [
        "[alerts",
        "[alerts]\nallow = []",
        "[alert]\n",
        "alerts = 1",
        "[server]\nallow_insecure = 1",
        "[server]\ninsecure = true",
        '[alerts]\nallowed_networks = "127.0.0.0/8"',
        '[alerts]\nallowed_networks = ["localhost"]',
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, text: str) -> None:
    """A mistyped name must not be ignored: the operator would believe that it works."""
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(ConfigError):
        read_configuration(tmp_path)


def test_insecure_address_is_allowed_by_the_file(tmp_path: Path) -> None:
    """It is not allowed by default."""
    assert not read_configuration(tmp_path).allows_insecure
    (tmp_path / FILE_NAME).write_text("[server]\nallow_insecure = true\n")
    assert read_configuration(tmp_path).allows_insecure


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "[::1]", "localhost"])
def test_loopback_needs_no_encryption(host: str) -> None:
    """No other machine can reach the address."""
    assert check_address(host, allows_insecure=False) == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.0.7", "console.example.org"])
def test_address_that_others_can_reach_must_be_allowed(host: str) -> None:
    """The error says what to do; an operator who allows it is warned at each start."""
    with pytest.raises(ConfigError, match=r"in front of 127\.0\.0\.1.*--insecure"):
        check_address(host, allows_insecure=False)
    assert "does not encrypt" in check_address(host, allows_insecure=True)
