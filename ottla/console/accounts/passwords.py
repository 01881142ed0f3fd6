"""Hashes of passwords: scrypt (RFC 7914) from the standard library, with its parameters in the
text.

The parameters are one of OWASP's equivalent choices: N=2^15, r=8, p=3. A hash needs a little more
than 32 MiB, and only one is computed at a time. glibc returns blocks of that size to the system;
it keeps smaller ones, once for each thread that has checked a password.
"""

import base64
import hashlib
import hmac
import secrets
import threading

# The parameters N, r and p of scrypt for new passwords.
COST, BLOCK, PARALLEL = 2**15, 8, 3
_SALT_BYTES = 16
_MEMORY = 64 * 1024 * 1024
MIN_LENGTH = 8
# scrypt reads the whole password: a limit keeps a request from costing more than a hash.
MAX_LENGTH = 200
_one_at_a_time = threading.Lock()


def hash_password(password: str) -> str:
    """Return `scrypt$N$r$p$salt$hash`; the salt is random."""
    salt = secrets.token_bytes(_SALT_BYTES)
    digest = _scrypt(password, salt, COST, BLOCK, PARALLEL)
    numbers = f"{COST}${BLOCK}${PARALLEL}"
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
    with _one_at_a_time:
        return hashlib.scrypt(
            password.encode(), salt=salt, n=cost, r=block, p=parallel, maxmem=_MEMORY, dklen=32
        )


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text)
