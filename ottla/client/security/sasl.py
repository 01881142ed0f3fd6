"""The client's messages of SASL: PLAIN (RFC 4616), SCRAM (RFC 5802, ScramSaslClient), OAUTHBEARER
(RFC 7628).

Pure: an exchange is a generator from the server's messages to the client's.
"""

from collections.abc import Callable, Generator

from ottla.client.security.options import HASHES, Credentials
from ottla.security.scram import Login, ServerNotProven, messages_of

# More would take minutes.
_ITERATIONS_MAX = 10_000_000


class AuthenticationFailed(Exception):
    """The server's part of an exchange is wrong."""


Exchange = Generator[bytes, bytes, None]
"""Yields the client's messages and is sent the server's; raises AuthenticationFailed."""


def exchange(credentials: Credentials, nonce: str) -> Exchange:
    """Return the exchange of a mechanism; `nonce` is random text without a comma."""
    if credentials.mechanism == "PLAIN":
        return _plain(credentials)
    if credentials.message is not None:
        return _bearer(credentials.message)
    return _scram(credentials, nonce)


def _plain(credentials: Credentials) -> Exchange:
    # RFC 4616, without an authorization identity.
    yield f"\0{credentials.username}\0{credentials.password}".encode()


def _bearer(message: Callable[[], bytes]) -> Exchange:
    refusal = yield message()
    if refusal:
        # RFC 7628: the client confirms the refusal with one byte; the server's error follows.
        yield b"\x01"
        raise AuthenticationFailed(f"the server refuses the token: {refusal.decode()}")


def _scram(credentials: Credentials, nonce: str) -> Exchange:
    own = Login(
        HASHES[credentials.mechanism],
        credentials.username,
        credentials.password,
        is_token=credentials.is_token,
    )
    try:
        yield from messages_of(own, nonce, _ITERATIONS_MAX)
    except ServerNotProven as error:
        raise AuthenticationFailed(str(error)) from error
