"""Which addresses other machines can reach. Pure."""

import ipaddress

_LOOPBACK = "127.0.0.1"
_WILDCARDS = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach an address; False for all other names."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def reached(host: str) -> str:
    """Return the address at which a listener is reached from this machine."""
    return _LOOPBACK if host in _WILDCARDS else host
