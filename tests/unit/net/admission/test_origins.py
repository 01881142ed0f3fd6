"""Bounds on strangers count networks of IPv6, not their addresses."""

import pytest

from ottla.net.admission.origins import origin_of


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("broker", "broker"),
        ("", ""),
        ("a:b", "a:b"),
    ],
)
def test_origin_of_an_address(host: str, origin: str) -> None:
    """One customer has many addresses of IPv6 and few of IPv4."""
    assert origin_of(host) == origin
