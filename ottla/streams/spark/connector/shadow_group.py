"""Shows a streaming query's progress as a consumer group, so that Kafka's tools can show its lag.

The query never reads these offsets: only the checkpoint determines where it resumes. A commit that
fails is therefore logged and retried later, and never delays the query for long. The group has no
members; its offsets are committed from outside, as by a tool that resets them. The offsets of an
application have a mark, which distinguishes them from a reset by the user
(query/starting_offsets.py).
"""

import logging
import time

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin.offsets import CommittedOffset, commit_offsets
from ottla.client.brokers import PASSING
from ottla.client.config.access import ClusterAccess
from ottla.client.errors import NotReachable, TimedOut
from ottla.streams.spark.connector.ranges import Offsets

_log = logging.getLogger(__name__)

# The maximum time a commit delays the query, and the pauses after a failure: the short one after a
# transient failure, such as a broker's restart, the long one after a failure that needs an
# administrator.
_TIMEOUT_S = 2.0
_SHORT_REST_S = 2.0
_REST_S = 30.0
# Batches may end more often than progress needs to be shown.
_INTERVAL_S = 0.5


class ShadowGroup:
    """Commits offsets to a group; does nothing if no group is named. For one thread.

    `mark` is the metadata of the offsets.
    """

    def __init__(
        self, access: ClusterAccess, group_id: str | None, client_id: str, mark: str = ""
    ) -> None:
        self._brokers = access.brokers(timeout_s=_TIMEOUT_S, client_id=client_id)
        self._group_id = group_id
        self._mark = mark
        self._committed: Offsets = {}
        self._next_at = 0.0
        self._is_failing = False

    def follow(self, offsets: Offsets, *, at_once: bool = False) -> None:
        """Commit the query's offsets if they have changed; at most twice a second unless `at_once`."""
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
                    "The progress of the query cannot be committed to the group %r for now: %s",
                    self._group_id,
                    _advice(error),
                )
            self._is_failing = True
            self._next_at = now + (_SHORT_REST_S if _is_transient(error) else _REST_S)
            return
        self._is_failing = False
        self._committed = dict(offsets)
        self._next_at = now + _INTERVAL_S

    def close(self) -> None:
        """Close the connections; idempotent."""
        self._brokers.close()


def _is_transient(error: OttlaError) -> bool:
    if isinstance(error, ApiError):
        return error.code in PASSING
    return isinstance(error, NotReachable | TimedOut)


def _advice(error: OttlaError) -> str:
    if isinstance(error, ApiError) and error.code is ErrorCode.UNKNOWN_MEMBER_ID:
        return "it has members of its own; set another kafka.group.id for the query"
    return str(error)
