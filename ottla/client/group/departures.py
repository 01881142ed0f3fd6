"""The reason why a member is no longer in its group, in one sentence."""

import logging
import time
from collections.abc import Mapping
from typing import Any

# librdkafka's log lines that report a departure, by their names.
_SESSION_TIMEOUT = "SESSTMOUT"
_FENCED = ("FENCED", "STATIC")


class Departures(logging.Handler):
    """Collects what librdkafka reports about a membership; a handler for its log lines."""

    def __init__(self, group_id: str, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self._group = f"the member left group {group_id!r}"
        self._poll_limit_ms = int(settings.get("max.poll.interval.ms", 300_000))
        self._session = f"session.timeout.ms ({int(settings.get('session.timeout.ms', 45_000))})"
        if str(settings.get("group.protocol", "classic")).lower() == "consumer":
            self._session = "the broker's group.consumer.session.timeout.ms"
        self._instance = settings.get("group.instance.id")
        self._polled = time.monotonic()
        # The last time between two polls that was too long, until the member has rejoined.
        self._late_s = 0.0
        self._is_member = False
        self.reason: str | None = None

    def polled(self) -> None:
        """Note that the caller has called `poll`."""
        if self.is_late:
            self._late_s = time.monotonic() - self._polled
        self._polled = time.monotonic()

    def poll_came_late(self) -> None:
        """Note that the time between two calls of `poll` was too long."""
        passed_s = max(time.monotonic() - self._polled, self._late_s, self._poll_limit_ms / 1000)
        self._left(
            f"{self._group}: poll was not called for {passed_s:.1f} s,"
            f" and max.poll.interval.ms is {self._poll_limit_ms}; fetch fewer records at once "
            "(max.poll.records) or raise max.poll.interval.ms"
        )

    @property
    def is_late(self) -> bool:
        """True if `poll` was not called for longer than the group allows."""
        return (time.monotonic() - self._polled) * 1000 > self._poll_limit_ms

    def fenced(self) -> None:
        """Note that another member took over the static identity."""
        self._left(
            f"{self._group}: another member joined with group.instance.id {self._instance!r}; "
            "each running consumer needs an id of its own"
        )

    def removed(self) -> None:
        """Note that the coordinator does not know the member any more."""
        if self.is_late or self._late_s:
            self.poll_came_late()
        elif self.reason is None or self._is_member:
            self._left(
                f"{self._group}: the coordinator removed it, because no heartbeat arrived within "
                f"{self._session}, or on behalf of an administrator"
            )

    def rejoined(self) -> None:
        """Note that the member has an assignment again; the reason of the last departure stays."""
        self._is_member = True
        self._late_s = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Read a log line of librdkafka."""
        if _SESSION_TIMEOUT not in record.getMessage():
            return
        # A member that polls too late has no session, either.
        if self.is_late or self._late_s:
            self.poll_came_late()
        else:
            self.session_over()

    def session_over(self) -> None:
        """Note that no response to a heartbeat arrived for the time of the session."""
        self._left(
            f"{self._group}: the coordinator responded to no heartbeat within {self._session}; "
            "check the network and the broker's load"
        )

    def _left(self, reason: str) -> None:
        self.reason = reason
        self._is_member = False

    @property
    def has_left(self) -> bool:
        """True after a departure, until the next assignment."""
        return self.reason is not None and not self._is_member

    def sentence(self) -> str:
        """Return the reason, or that the group has rebalanced."""
        if self.reason is not None and not self._is_member:
            return self.reason
        return (
            f"{self._group.replace('left', 'is rejoining')}: the group has rebalanced, and other "
            "members may own its partitions now"
        )
