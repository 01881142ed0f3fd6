"""SASL DIGEST-MD5 (RFC 2831), by which ZooKeeper authenticates users: both sides.

Neither side sends the password, and each proves that it knows it. With a random password of 256
bits the weakness of MD5 does not matter: it lies in collisions, and passwords that can be guessed.
Pure: an exchange of the client is a generator from the server's messages to the client's.
"""

import hashlib
import hmac
import re
from collections.abc import Generator
from typing import NamedTuple

from ottla.base.errors import OttlaError

# ZooKeeper's servers use this pair instead of their host name.
REALM = "zk-sasl-md5"
DIGEST_URI = f"zookeeper/{REALM}"
_OF_CLIENT, _OF_SERVER = "AUTHENTICATE", ""
_FIELD = re.compile(r'([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]*))')


class AuthenticationFailed(OttlaError):
    """The other side's part of an exchange is wrong."""


Exchange = Generator[bytes, bytes, None]
"""Yields the client's messages and is sent the server's; raises AuthenticationFailed."""


class _Terms(NamedTuple):
    """The fields of an exchange that both proofs contain."""

    username: str
    realm: str
    nonce: str
    client_nonce: str
    digest_uri: str
    # The user as whom the client wants to act, if it names one.
    authorized: str = ""

    def proof(self, password: str, side: str) -> str:
        """Return the proof of the client (`AUTHENTICATE`), or of the server (empty `side`)."""
        identity = hashlib.md5(
            b":".join(map(_encode, (self.username, self.realm, password))), usedforsecurity=False
        ).digest()
        rest = f":{self.nonce}:{self.client_nonce}"
        if self.authorized:
            rest += f":{self.authorized}"
        secret = _hex(identity + rest.encode())
        tail = f"{self.nonce}:00000001:{self.client_nonce}:auth"
        return _hex(f"{secret}:{tail}:{_hex(f'{side}:{self.digest_uri}'.encode())}".encode())


def exchange(
    username: str, password: str, client_nonce: str, digest_uri: str = DIGEST_URI
) -> Exchange:
    """Return the exchange of a client; `client_nonce` is random text without quotation marks."""
    challenge = _fields((yield b"").decode())
    if "nonce" not in challenge:
        raise AuthenticationFailed("the server's first message has no nonce")
    if "auth" not in re.split(r"[\s,]+", challenge.get("qop", "auth")):
        raise AuthenticationFailed(f"the server requires qop={challenge['qop']}, not auth")
    terms = _Terms(
        username, challenge.get("realm", ""), challenge["nonce"], client_nonce, digest_uri
    )
    rows = [
        *(["charset=utf-8"] if "charset" in challenge else []),
        f"username={_quoted(username)}",
        f"realm={_quoted(terms.realm)}",
        f"nonce={_quoted(terms.nonce)}",
        "nc=00000001",
        f"cnonce={_quoted(client_nonce)}",
        f"digest-uri={_quoted(digest_uri)}",
        f"response={terms.proof(password, _OF_CLIENT)}",
        "qop=auth",
    ]
    final = _fields((yield ",".join(rows).encode()).decode())
    if not hmac.compare_digest(final.get("rspauth", ""), terms.proof(password, _OF_SERVER)):
        raise AuthenticationFailed("the server does not know the password")


class ServerExchange:
    """The exchange of a server with one user; `nonce` is random and used once.

    `is_proven` is True once the client has proven that it knows the password.
    """

    def __init__(self, username: str, password: str, nonce: str) -> None:
        self.is_proven = False
        self._username = username
        self._password = password
        self._nonce = nonce
        self._is_challenged = False

    def step(self, message: bytes) -> bytes:
        """Return the reply to a message; AuthenticationFailed for a wrong proof."""
        if not self._is_challenged:
            self._is_challenged = True
            return (
                f'realm="{REALM}",nonce="{self._nonce}",qop="auth",charset=utf-8,algorithm=md5-sess'
            ).encode()
        try:
            fields = _fields(message.decode())
        except UnicodeDecodeError as error:
            raise AuthenticationFailed("the client's response is no text") from error
        authorized = fields.get("authzid", "")
        terms = _Terms(
            fields.get("username", ""),
            fields.get("realm", ""),
            self._nonce,
            fields.get("cnonce", ""),
            fields.get("digest-uri", ""),
            authorized,
        )
        is_expected = (
            terms.username == self._username
            and authorized in ("", self._username)
            and fields.get("nonce") == self._nonce
            and fields.get("nc") == "00000001"
            and fields.get("qop", "auth") == "auth"
        )
        proof = terms.proof(self._password, _OF_CLIENT)
        if not hmac.compare_digest(fields.get("response", "").encode(), proof.encode()) or (
            not is_expected
        ):
            raise AuthenticationFailed("the client does not know the password")
        self.is_proven = True
        return f"rspauth={terms.proof(self._password, _OF_SERVER)}".encode()


def _fields(message: str) -> dict[str, str]:
    return {
        name: re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
        for name, quoted, plain in _FIELD.findall(message)
    }


def _quoted(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def _encode(text: str) -> bytes:
    """Return the bytes that are hashed: ISO 8859-1 if it has all characters, else UTF-8."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _hex(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
