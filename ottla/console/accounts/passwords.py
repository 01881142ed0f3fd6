"""Hashes of passwords: scrypt (RFC 7914) from the standard library, with its parameters in the
text.

The parameters are OWASP's second choice (N=2^16, r=8, p=2: 64 MiB), reduced to 16 MiB and 5 rounds
of equal work, because the console may run inside a broker on a small machine.
"""

import base64
import hashlib
import hmac
import secrets

_COST, _BLOCK, _PARALLEL = 2**14, 8, 5
_SALT_BYTES = 16
_MEMORY = 64 * 1024 * 1024
MIN_LENGTH = 8
# scrypt reads the whole password: a limit keeps a request from costing more than a hash.
MAX_LENGTH = 200


def hash_password(password: str) -> str:
    """Return `scrypt$N$r$p$salt$hash`; the salt is random."""
    salt = secrets.token_bytes(_SALT_BYTES)
    digest = _scrypt(password, salt, _COST, _BLOCK, _PARALLEL)
    numbers = f"{_COST}${_BLOCK}${_PARALLEL}"
    return f"scrypt${numbers}${_encode(salt)}${_encode(digest)}"


def is_password(password: str, hashed: str) -> bool:
    """Compare a password with a hash in constant time."""
    _, cost, block, parallel, salt, digest = hashed.split("$")
    computed = _scrypt(password, _decode(salt), int(cost), int(block), int(parallel))
    return hmac.compare_digest(computed, _decode(digest))


def one_time_password() -> str:
    """Return a random password of 80 bits that is easy to type."""
    text = base64.b32encode(secrets.token_bytes(10)).decode().lower()
    return "-".join(text[start : start + 4] for start in range(0, len(text), 4))


def _scrypt(password: str, salt: bytes, cost: int, block: int, parallel: int) -> bytes:
    return hashlib.scrypt(
        password.encode(), salt=salt, n=cost, r=block, p=parallel, maxmem=_MEMORY, dklen=32
    )


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text)
