"""The file console.toml: absent, right, and wrong."""

import ipaddress
from pathlib import Path

import pytest

from ottla.base.errors import ConfigError
from ottla.console.configuration import FILE_NAME, read_allowed_networks


def test_allowed_networks_of_the_file(tmp_path: Path) -> None:
    """Without a file there are none."""
    assert read_allowed_networks(tmp_path) == ()
    (tmp_path / FILE_NAME).write_text('[alerts]\nallowed_networks = ["127.0.0.0/8"]\n')
    assert read_allowed_networks(tmp_path) == (ipaddress.ip_network("127.0.0.0/8"),)


@pytest.mark.parametrize(
    "text",
    [
        "[alerts",
        "[alerts]\nallow = []",
        "[alert]\n",
        "alerts = 1",
        '[alerts]\nallowed_networks = "127.0.0.0/8"',
        '[alerts]\nallowed_networks = ["localhost"]',
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, text: str) -> None:
    """A mistyped name must not be ignored: the operator would believe that it works."""
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(ConfigError):
        read_allowed_networks(tmp_path)
