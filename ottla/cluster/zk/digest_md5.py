"""The client's messages of SASL DIGEST-MD5 (RFC 2831), by which ZooKeeper authenticates users.

Pure: an exchange is a generator from the server's messages to the client's.
"""

import hashlib
import hmac
import re
from collections.abc import Generator

from ottla.base.errors import OttlaError

# ZooKeeper's servers use this pair instead of their host name.
DIGEST_URI = "zookeeper/zk-sasl-md5"
_FIELD = re.compile(r'([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]*))')


class AuthenticationFailed(OttlaError):
    """The server's part of an exchange is wrong."""


Exchange = Generator[bytes, bytes, None]
"""Yields the client's messages and is sent the server's; raises AuthenticationFailed."""


def exchange(
    username: str, password: str, client_nonce: str, digest_uri: str = DIGEST_URI
) -> Exchange:
    """Return the exchange; `client_nonce` is random text without quotation marks."""
    challenge = _fields((yield b"").decode())
    if "nonce" not in challenge:
        raise AuthenticationFailed("the server's first message has no nonce")
    if "auth" not in re.split(r"[\s,]+", challenge.get("qop", "auth")):
        raise AuthenticationFailed(f"the server requires qop={challenge['qop']}, not auth")
    realm = challenge.get("realm", "")
    identity = hashlib.md5(
        b":".join(map(_encode, (username, realm, password))), usedforsecurity=False
    ).digest()
    tail = f"{challenge['nonce']}:00000001:{client_nonce}:auth"
    secret = _hex(identity + f":{challenge['nonce']}:{client_nonce}".encode())
    response = _hex(f"{secret}:{tail}:{_hex(f'AUTHENTICATE:{digest_uri}'.encode())}".encode())
    rows = [
        *(["charset=utf-8"] if "charset" in challenge else []),
        f"username={_quoted(username)}",
        f"realm={_quoted(realm)}",
        f"nonce={_quoted(challenge['nonce'])}",
        "nc=00000001",
        f"cnonce={_quoted(client_nonce)}",
        f"digest-uri={_quoted(digest_uri)}",
        f"response={response}",
        "qop=auth",
    ]
    final = _fields((yield ",".join(rows).encode()).decode())
    expected = _hex(f"{secret}:{tail}:{_hex(f':{digest_uri}'.encode())}".encode())
    if not hmac.compare_digest(final.get("rspauth", ""), expected):
        raise AuthenticationFailed("the server does not know the password")


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
