"""The registrations of the processes that have had these log directories.

A process that holds the lock of a directory knows that the earlier ones have ended: it replaces
their registration although its session has not expired yet. The id and the addresses of a broker
prove nothing, because a configuration can be copied.
"""

import logging
from collections.abc import Iterator, Sequence
from functools import partial

from ottla.base.files import FileSystem, run_whole
from ottla.storage.directories.log_directory import LogDirectory
from ottla.storage.files import checkpoints
from ottla.storage.files.checkpoints import Incarnation

_log = logging.getLogger(__name__)

# More than one: a broker may be killed before it replaces the former registration.
RECORDED_MAX = 5


class StoredRegistrations:
    """The latest registrations, in a file of each log directory; `directories` are locked."""

    def __init__(self, files: FileSystem, directories: Sequence[LogDirectory]) -> None:
        self._files = files
        self._directories = directories
        self._recorded = list(dict.fromkeys(self._load()))[-RECORDED_MAX:]

    def _online(self) -> Iterator[str]:
        for directory in self._directories:
            if directory.failure is None:
                yield directory.file(checkpoints.REGISTRATIONS_FILE)

    def _load(self) -> Iterator[Incarnation]:
        for path in self._online():
            try:
                if self._files.exists(path):
                    yield from checkpoints.parse_registrations(self._files.read(path))
            except (OSError, ValueError) as error:
                _log.warning("ignoring damaged registrations path=%s reason=%s", path, error)

    def recorded(self) -> Sequence[Incarnation]:
        """Return the latest registrations, also of this process."""
        return self._recorded

    async def record(self, incarnation: Incarnation) -> None:
        """Store a registration durably that this process is about to make.

        If that fails, the next process waits until the session has expired.
        """
        self._recorded = [*self._recorded, incarnation][-RECORDED_MAX:]
        content = checkpoints.encode_registrations(self._recorded)
        for path in list(self._online()):
            try:
                await run_whole(self._files, partial(self._files.replace, path, content))
            except OSError as error:
                _log.warning("registration was not stored path=%s error=%s", path, error)
