"""The link that logs in the first admin: the start prints it, and it is valid once."""

import hashlib
import hmac
import secrets
import threading


class LoginLink:
    """The token of a link; without one no token is valid."""

    def __init__(self) -> None:
        self._digest = b""
        self._lock = threading.Lock()

    def create(self) -> str:
        """Return a new token, which replaces the former one."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._digest = _digest(token)
        return token

    def use(self, token: str) -> bool:
        """Return True if the token is valid, and invalidate it."""
        with self._lock:
            if not self._digest or not hmac.compare_digest(self._digest, _digest(token)):
                return False
            self._digest = b""
            return True


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
