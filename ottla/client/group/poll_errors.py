"""The errors that librdkafka has returned instead of records, until `poll` raises them."""

import logging
from collections.abc import Callable
from typing import Any

from ottla.client import transport
from ottla.client.errors import Fenced, RecordsDenied
from ottla.client.group.departures import Departures

_log = logging.getLogger("ottla.client")


class PollErrors:
    """The first error of one consumer that `poll` has not raised yet.

    A fatal error, and the error of a fenced member, which never returns to its group, is raised by
    each later `poll`, too. `refused` is for a consumer without a group: it returns the error of an
    assigned topic that the user may not read.
    """

    def __init__(
        self, departures: Departures, refused: Callable[[], RecordsDenied | None] | None
    ) -> None:
        self._departures = departures
        self._refused = refused
        self._error: Exception | None = None
        self._has_ended = False

    def take(self, message: Any) -> None:
        """Take the error of a message; temporary ones are logged."""
        cause = message.error()
        if cause.code() == transport.POLL_TOO_LATE:
            self._departures.poll_came_late()
            _log.warning("%s", self._departures.reason)
        elif transport.is_fenced_instance(cause):
            self._departures.fenced()
            self._error, self._has_ended = Fenced(self._departures.sentence()), True
        elif cause.code() == transport.GROUP_DENIED and self._refused is not None:
            self._error = self._error or self._refused()
        elif transport.is_transient(cause):
            _log.info("the consumer keeps trying: %s", cause.str())
        elif self._error is None or transport.is_fatal(cause):
            self._error = transport.record_error(cause, message.topic(), transport.READ)
            self._has_ended = transport.is_fatal(cause)

    def raise_first(self) -> None:
        """Raise the error, if there is one."""
        if self._error is not None:
            error = self._error
            self._error = error if self._has_ended else None
            raise error
