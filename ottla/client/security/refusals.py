"""Errors of a connection that the broker or the client refuses: a retry would fail in the same way.

librdkafka retries them without end, and only reports them. The Java client ends its calls
(AuthenticationException).
"""

import re
from typing import Protocol

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.errors import HandshakeFailed

# As in "sasl_ssl://host:9093/bootstrap: SASL authentication error: … (after 103ms in state …)".
_REPORT = re.compile(r"(?:\w+://)?(?P<address>[^/]+)/\w+: (?P<text>.+?)(?: \(after [^()]*\))?")
_LOGIN = "SASL authentication error: "
_HANDSHAKE = "SSL handshake failed: "
_UNTRUSTED = "certificate verify failed"


class Reported(Protocol):
    """An error of librdkafka."""

    def name(self) -> str:
        """Return the name of its code."""
        ...

    def str(self) -> str:
        """Return its text."""
        ...


def refused_login(address: object, reason: str | None) -> ApiError:
    """Return the error of a broker that rejects the user; its message is the broker's reason."""
    return ApiError(
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        reason or "authentication failed",
        subject=f"{address} refuses the user",
    )


def failed_handshake(address: object, reason: object) -> HandshakeFailed:
    """Return the error of a TLS handshake that fails."""
    return HandshakeFailed(f"{address} cannot be reached with TLS: {reason}")


def refusal(error: Reported) -> OttlaError | None:
    """Return our error if librdkafka reports a refused login or an untrusted certificate."""
    name, text = error.name(), error.str()
    report = _REPORT.fullmatch(text)
    address, reason = ("the broker", text) if report is None else report.group("address", "text")
    if name == "_AUTHENTICATION":
        return refused_login(address, reason.removeprefix(_LOGIN))
    # A connection that is closed in the meantime has another code.
    if name in ("_SSL", "_TRANSPORT") and _UNTRUSTED in text:
        return failed_handshake(address, reason.removeprefix(_HANDSHAKE))
    return None
