"""The follower's half of an incremental fetch session (KIP-227): send only changed positions.

Pure. Follows org.apache.kafka.clients.FetchSessionHandler.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.base.errors import ErrorCode

NO_SESSION = 0
INITIAL_EPOCH = 0
_EPOCH_MAX = 2**31 - 1

Key = tuple[bytes, int]


class SessionPosition(NamedTuple):
    """The position of one partition in a request; the session sends it again only if it has
    changed.
    """

    offset: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int


class SessionRequest(NamedTuple):
    """The part of a request that depends on the session: its ids, and the changed partitions."""

    session_id: int
    epoch: int
    changed: Mapping[Key, SessionPosition]
    forgotten: tuple[Key, ...]


class FetchSession:
    """The session with one leader; `next_request` and `answered` alternate."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        # The partitions of the session, as the leader knows them after the last request.
        self._known: dict[Key, SessionPosition] = {}

    def next_request(
        self, positions: Mapping[Key, SessionPosition], ended: Iterable[Key] = ()
    ) -> SessionRequest:
        """Return the next request: `positions` are in the session from now on, `ended` are not.

        All other partitions stay as they are, so the work depends on the number of changes.
        """
        known = self._known
        forgotten = tuple(key for key in ended if known.pop(key, None) is not None)
        changed = {
            key: position for key, position in positions.items() if known.get(key) != position
        }
        known.update(changed)
        if self._epoch == INITIAL_EPOCH:
            return SessionRequest(self._id, INITIAL_EPOCH, dict(known), ())
        return SessionRequest(self._id, self._epoch, changed, forgotten)

    def next_move(self, key: Key, position: SessionPosition) -> tuple[int, int] | None:
        """Return the ids of the next request if it only moves a partition of the session."""
        if self._epoch == INITIAL_EPOCH or self._known.get(key, position) == position:
            return None
        self._known[key] = position
        return self._id, self._epoch

    def answered(self, error: ErrorCode, session_id: int) -> None:
        """Continue the session after a response; an error makes the next request a full one."""
        if error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._id = NO_SESSION
        if error is not ErrorCode.NONE:
            self._epoch = INITIAL_EPOCH
        elif session_id == NO_SESSION:
            # The leader has no room for a session, or has closed it.
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        else:
            self._id = session_id
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1

    def interrupted(self) -> None:
        """Replace the session by a new one with the next request: the last request may not have
        arrived.
        """
        self._epoch = INITIAL_EPOCH
