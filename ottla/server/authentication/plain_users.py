"""The users of PLAIN in a file, which has salted hashes in place of passwords.

To hash a password takes milliseconds, so another thread does it, one password at a time. The file
is read again at the next login after a change. If it cannot be read then, the former users stay,
with an error in the log.
"""

import hmac
from collections.abc import Callable

from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem
from ottla.base.logs import provoked_logger
from ottla.security.scram import (
    ITERATIONS_MIN,
    SALT_BYTES,
    USERS_MECHANISM,
    ScramCredential,
    credential_of_password,
    users_of,
)
from ottla.server.authentication.password_checks import PasswordChecks

_log = provoked_logger(__name__)

_NOBODY = ScramCredential(bytes(SALT_BYTES), b"", b"", ITERATIONS_MIN)


class PlainUsers:
    """The users of a file; ConfigError if it cannot be read."""

    def __init__(self, path: str, files: FileSystem) -> None:
        self._path = path
        self._files = files
        self.checks = PasswordChecks(files.in_background)
        self._users: dict[str, ScramCredential] = {}
        # The time of the last write and the size.
        self._stamp = (-1, -1)
        try:
            self._read()
        except (OSError, ValueError) as error:
            raise ConfigError(f"the users of PLAIN in {path} cannot be read: {error}") from error

    def check(self, user: str, password: str) -> bool:
        """Return True for a user with this password; an unknown user takes as long."""
        return self.slow_check(user, password)()

    def slow_check(self, user: str, password: str) -> Callable[[], bool]:
        """Return the same as a function, which any thread may call; the file is read now."""
        try:
            self._read()
        except (OSError, ValueError) as error:
            _log.error("users not read path=%s error=%s", self._path, error)
        is_user = user in self._users
        known = self._users[user] if is_user else self._unknown()

        def is_right() -> bool:
            given = credential_of_password(USERS_MECHANISM, password, known.salt, known.iterations)
            is_same = hmac.compare_digest(given.stored_key, known.stored_key)
            return is_user and is_same

        return is_right

    def _unknown(self) -> ScramCredential:
        """Return a credential that costs as much as a credential of the file."""
        return next(iter(self._users.values()), _NOBODY)

    def _read(self) -> None:
        stamp = self._files.modified_ms(self._path), self._files.size(self._path)
        if stamp == self._stamp:
            return
        # A file that cannot be read is an error once.
        self._stamp = stamp
        self._users = users_of(self._files.read(self._path).decode())
