"""Which addresses other machines can reach, and which listeners are not secure there. Pure.

Everyone who reaches such a listener has the rights of its clients, or can read their passwords. A
broker with one does not start, unless allow.insecure.listeners=true says that this is intended.
"""

import ipaddress
from collections.abc import Iterator
from typing import Protocol
from urllib.parse import urlsplit

from ottla.security.exchanges import PLAIN

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


class Addressed(Protocol):
    """A listener: its name, its security protocol, and the host that it is bound to."""

    @property
    def name(self) -> str:
        """The name, in capital letters."""
        ...

    @property
    def protocol(self) -> str:
        """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        ...

    @property
    def host(self) -> str:
        """The host; empty for every address of the machine."""
        ...


class Bearer(Protocol):
    """How tokens are checked: by keys in a file, at an address, or not at all."""

    @property
    def keys_path(self) -> str:
        """The path of the file; empty for none."""
        ...

    @property
    def keys_url(self) -> str:
        """The address; empty for none."""
        ...


class Secured(Protocol):
    """The security of a listener."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms of SASL."""
        ...

    @property
    def tls(self) -> object:
        """The files of TLS; None without it."""
        ...

    @property
    def bearer(self) -> Bearer | None:
        """How tokens of OAUTHBEARER are checked; None without that mechanism."""
        ...


def weaknesses(listener: Addressed, security: Secured) -> Iterator[str]:
    """Yield a sentence for each reason why a listener is not secure.

    Without signatures of tokens, the users of the same machine can choose to be anyone, too.
    """
    place = f"the listener {listener.name} on {listener.host or 'every address'}"
    is_open = not is_loopback(listener.host)
    if is_open and listener.protocol == "PLAINTEXT":
        yield (
            f"{place} has neither TLS nor SASL, and other machines can reach it: their clients need no "
            "identity"
        )
    if is_open and PLAIN in security.mechanisms and security.tls is None:
        yield f"{place} has PLAIN without TLS: passwords can be read on the way"
    bearer = security.bearer
    if bearer is None:
        return
    if not bearer.keys_path and not bearer.keys_url:
        yield f"{place} accepts tokens without a signature, which everyone can write for every user"
    url = urlsplit(bearer.keys_url)
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        yield (
            f"{place} checks tokens by keys from {bearer.keys_url}: without https, others can replace "
            "them on the way"
        )
