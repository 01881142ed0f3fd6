"""The client's messages of SASL: PLAIN (RFC 4616), SCRAM (RFC 5802, ScramSaslClient), OAUTHBEARER
(RFC 7628).

Pure: an exchange is a generator from the server's messages to the client's.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Generator

from ottla.base.options import is_digits
from ottla.client.security.options import HASHES, Credentials

# RFC 7677: a server that asks for fewer makes the password easy to guess. More would take minutes.
_ITERATIONS = range(4096, 10_000_001)


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
    name = HASHES[credentials.mechanism]
    user = credentials.username.replace("=", "=3D").replace(",", "=2C")
    begin = f"n={user},r={nonce}" + (",tokenauth=true" if credentials.is_token else "")
    server_first = (yield f"n,,{begin}".encode()).decode()
    fields = _fields(server_first)
    iterations = int(fields["i"]) if is_digits(fields.get("i", ""), 9) else 0
    if not fields.get("r", "").startswith(nonce) or iterations not in _ITERATIONS:
        raise AuthenticationFailed("the server's first message is wrong")
    salt = base64.b64decode(fields.get("s", ""))
    salted = hashlib.pbkdf2_hmac(name, credentials.password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", name)
    final = f"c=biws,r={fields['r']}"
    signed = f"{begin},{server_first},{final}".encode()
    signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_final = (yield f"{final},p={base64.b64encode(proof).decode()}".encode()).decode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
    verifier = base64.b64decode(_fields(server_final).get("v", ""))
    if not hmac.compare_digest(verifier, expected):
        raise AuthenticationFailed("the server does not know the password")


def _fields(message: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in message.split(","))
