"""The users of PLAIN in a file, which has salted hashes in place of passwords.

The file is read again at the next login after a change. If it cannot be read then, the former users
stay, with an error in the log.
"""

import hmac

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

_log = provoked_logger(__name__)

_NOBODY = ScramCredential(bytes(SALT_BYTES), b"", b"", ITERATIONS_MIN)


class PlainUsers:
    """The users of a file; ConfigError if it cannot be read."""

    def __init__(self, path: str, files: FileSystem) -> None:
        self._path = path
        self._files = files
        self._users: dict[str, ScramCredential] = {}
        # The time of the last write and the size.
        self._stamp = (-1, -1)
        try:
            self._read()
        except (OSError, ValueError) as error:
            raise ConfigError(f"the users of PLAIN in {path} cannot be read: {error}") from error

    def check(self, user: str, password: str) -> bool:
        """Return True for a user with this password; an unknown user takes as long."""
        try:
            self._read()
        except (OSError, ValueError) as error:
            _log.error("users not read path=%s error=%s", self._path, error)
        known = self._users.get(user, self._unknown())
        given = credential_of_password(USERS_MECHANISM, password, known.salt, known.iterations)
        is_same = hmac.compare_digest(given.stored_key, known.stored_key)
        return user in self._users and is_same

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
