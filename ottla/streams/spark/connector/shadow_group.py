"""Shows a streaming query's progress as a consumer group, where every tool of Kafka's looks for lag.

Nothing is ever read from there: the checkpoint alone knows where the query goes on. So what cannot be committed is told
in the log and tried again later, and never holds up the query for long. The group has no members; its offsets are
committed from outside, as a tool does that resets them; those of an application with a mark, as they are no wish of
where to start (starting.py).
"""

import logging
import time

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin.offsets import CommittedOffset, commit_offsets
from ottla.client.brokers import PASSING, Brokers
from ottla.client.errors import NotReachable, TimedOut
from ottla.streams.spark.connector.ranges import Offsets

_log = logging.getLogger(__name__)

# At most so long a commit holds up the query, and so long it is let alone after a failure: one that passes by itself,
# such as a broker that restarts, and one that somebody must see to.
_TIMEOUT_S = 2.0
_SHORT_REST_S = 2.0
_REST_S = 30.0
# Batches may come faster than anybody looks.
_INTERVAL_S = 0.5


class ShadowGroup:
    """Commits what it is told to a group; without a group's name it does nothing. For one thread.

    `mark` is the metadata of the offsets.
    """

    def __init__(
        self, bootstrap: str, group_id: str | None, client_id: str, mark: str = ""
    ) -> None:
        self._brokers = Brokers(bootstrap, timeout_s=_TIMEOUT_S, client_id=client_id)
        self._group_id = group_id
        self._mark = mark
        self._committed: Offsets = {}
        self._next_at = 0.0
        self._is_failing = False

    def follow(self, offsets: Offsets, *, at_once: bool = False) -> None:
        """Commit where the query has got to, if that is news; not more often than twice a second."""
        now = time.monotonic()
        if (
            self._group_id is None
            or offsets == self._committed
            or (now < self._next_at and not at_once)
        ):
            return
        news = {
            key: CommittedOffset(offset, metadata=self._mark)
            for key, offset in offsets.items()
            if self._committed.get(key) != offset
        }
        try:
            commit_offsets(self._brokers, self._group_id, news)
        except OttlaError as error:
            if not self._is_failing:
                _log.warning(
                    "The progress of the query is not shown in the group %r for now: %s",
                    self._group_id,
                    _advice(error),
                )
            self._is_failing = True
            self._next_at = now + (_SHORT_REST_S if _is_passing(error) else _REST_S)
            return
        self._is_failing = False
        self._committed = dict(offsets)
        self._next_at = now + _INTERVAL_S

    def close(self) -> None:
        """Close the connections; idempotent."""
        self._brokers.close()


def _is_passing(error: OttlaError) -> bool:
    if isinstance(error, ApiError):
        return error.code in PASSING
    return isinstance(error, NotReachable | TimedOut)


def _advice(error: OttlaError) -> str:
    if isinstance(error, ApiError) and error.code is ErrorCode.UNKNOWN_MEMBER_ID:
        return "it has members of its own; give the query another kafka.group.id"
    return str(error)
