"""The names in the Host header that a port for metrics accepts. Pure.

A web page can let its own name point to the address of the port (DNS rebinding), and would read it
through the browser of a user who can reach it. The browser then sends that name, so a name that a
stranger can register is refused. Addresses are accepted, and names that the public DNS does not
have: those without a dot, as of containers, and the names of loopback and of Kubernetes.
"""

import ipaddress
from collections.abc import Iterable

ANY = "*"
# Reserved, or not delegated, in the public DNS.
_PRIVATE_DOMAINS = (".localhost", ".internal", ".svc", ".svc.cluster.local")


class HostNames:
    """The names of one port; `allowed` may have names, domains (`*.example.org`), or `*`."""

    def __init__(self, own: Iterable[str], allowed: Iterable[str]) -> None:
        self._names = {name.lower() for name in own if name}
        rules = [rule.lower() for rule in allowed]
        self._names.update(rule for rule in rules if not rule.startswith(ANY))
        self._domains = tuple(
            rule.removeprefix(ANY) for rule in rules if rule.startswith(f"{ANY}.")
        )
        self._is_open = ANY in rules

    def have(self, header: str) -> bool:
        """Return True if a Host header has one of the names."""
        if self._is_open:
            return True
        name = _without_port(header).rstrip(".").lower()
        if _is_address(name) or name in self._names:
            return True
        return bool(name) and (
            "." not in name or name.endswith((*_PRIVATE_DOMAINS, *self._domains))
        )


def _without_port(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    name, colon, port = header.rpartition(":")
    return name if colon and port.isdecimal() and ":" not in name else header


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
