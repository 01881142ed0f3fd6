"""Why a member of a group has no partitions, in a sentence: reported once, after ten seconds.

Java's and librdkafka's consumers wait without a word for a topic that does not exist, for another
member that does not call `poll`, or for a partition that is free.

Not done: with options of TLS or SASL that only librdkafka has, the reason is not looked up.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.base.loading import deferred_module
from ottla.client.brokers import Brokers
from ottla.client.reach.connection_watch import own_brokers

# Few consumers need a reason.
if TYPE_CHECKING:
    from ottla.client.admin import groups
else:
    groups = deferred_module("ottla.client.admin.groups")

_log = logging.getLogger("ottla.client")
_WAIT_S = 10.0
_REQUEST_S = 5.0
_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Reconciling", "Assigning")
_NO_COORDINATOR = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


class AssignmentWatch:
    """Logs why a consumer has no partitions ten seconds after it has subscribed.

    `explain` returns the reason for topics and the id of a member; it is called in a thread of its
    own.
    """

    def __init__(self, explain: Callable[[tuple[str, ...], str | None], str]) -> None:
        self._explain = explain
        self._topics: tuple[str, ...] = ()
        self._report_at: float | None = None

    def begin(self, topics: tuple[str, ...]) -> None:
        """Note that the consumer has subscribed to topics; none if it assigns partitions itself."""
        self._topics = topics
        self._report_at = time.monotonic() + _WAIT_S if topics else None

    def check(self, assignment: Collection[Any], member_id: Callable[[], str | None]) -> None:
        """Report the reason if the time is over and there is still no assignment."""
        if self._report_at is None:
            return
        if assignment:
            self._report_at = None
        elif time.monotonic() >= self._report_at:
            self._report_at = None
            threading.Thread(
                target=self._report, args=(member_id(),), name="ottla-unassigned", daemon=True
            ).start()

    def _report(self, member_id: str | None) -> None:
        names = ", ".join(self._topics)
        try:
            reason = self._explain(self._topics, member_id)
        except OttlaError as error:
            reason = str(error).rstrip(".")
        _log.warning(
            "the consumer has waited %g s for partitions of %s: %s", _WAIT_S, names, reason
        )


def look_up_reason(options: Mapping[str, Any], topics: Sequence[str], member_id: str | None) -> str:
    """Return why the member of the group in a client's options has no partitions of topics."""
    brokers = own_brokers(options, _REQUEST_S)
    if brokers is None:
        return "the group has not assigned any"
    with brokers:
        return reason_of(brokers, str(options["group.id"]), topics, member_id)


def reason_of(brokers: Brokers, group_id: str, topics: Sequence[str], member_id: str | None) -> str:
    """Return why a member of a group has no partitions of topics; OttlaError has the reason, too.

    A name that begins with ^ is a pattern.
    """
    names = [name for name in topics if not name.startswith("^")]
    rows = brokers.metadata(None if len(names) < len(topics) else names).topics
    counts = {row.name or "": len(row.partitions) for row in rows if not row.error_code}
    patterns = [name for name in topics if name.startswith("^")]
    missing = [name for name in names if name not in counts]
    if missing:
        listed = ", ".join(map(repr, missing))
        return f"there is no topic {listed}: create it, or correct the name"
    read = [
        name
        for name in counts
        if name in names or any(re.search(pattern, name) for pattern in patterns)
    ]
    if not read:
        return "no topic of the cluster matches the pattern"
    try:
        brokers.group_coordinator(group_id)
    except ApiError as error:
        if error.code in _NO_COORDINATOR:
            return (
                f"group {group_id!r} has no coordinator yet: the brokers cannot create or load "
                "__consumer_offsets (see offsets.topic.replication.factor, and the broker's log)"
            )
        raise
    try:
        group = groups.describe_group(brokers, group_id)
    except ApiError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return f"the member has not joined group {group_id!r} yet, which has no members"
    return _reason_in(group, sum(counts[name] for name in read), member_id)


def _reason_in(group: "groups.Group", partitions: int, member_id: str | None) -> str:
    name = f"group {group.group_id!r}"
    if group.state in _REBALANCING:
        others = [row for row in group.members if row.member_id != member_id]
        listed = ", ".join(sorted({f"{row.client_id} on {row.host}" for row in others}))
        waits = f" for its other members to call poll ({listed})" if others else ""
        return f"{name} is rebalancing, and waits{waits}; max.poll.interval.ms bounds that"
    if len(group.members) > partitions and any(row.member_id == member_id for row in group.members):
        return (
            f"{name} has {len(group.members)} members for {partitions} partitions, and this one is "
            "a spare: add partitions, or stop members"
        )
    return f"the member has not joined {name} yet, whose state is {group.state}"
