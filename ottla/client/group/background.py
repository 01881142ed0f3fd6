"""The thread of a group member: joins, heartbeats and commits that do not depend on user code.

The consumer's thread gives it jobs and takes events from it, in `poll`. While it waits for a
generation to be complete, it sends nothing else: the coordinator knows that the member is there.
"""

import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from enum import Enum, auto
from queue import Empty, SimpleQueue
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.user_code import LoggedErrors
from ottla.client.brokers import Brokers, is_passing
from ottla.client.errors import ClientError, NotReachable, TimedOut
from ottla.client.group.assignors import PartitionAssignor, PartitionRacks
from ottla.client.group.identities import NO_GENERATION
from ottla.client.group.member import ClassicMember, GroupSettings, Verdict, leave
from ottla.client.group.offset_requests import Offsets
from ottla.client.records import TopicPartition
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

_log = logging.getLogger("ottla.client")
_REQUEST_S_MIN, _REQUEST_S_MAX = 1.0, 10.0
_PAUSE_S = 0.1
_LEAVE_S = 5.0
# A subscribed topic that does not exist yet is looked for this often.
_MISSING_S = 1.0


class Cause(Enum):
    """Why a member lost its partitions."""

    REMOVED = auto()
    LATE_POLL = auto()
    SESSION_OVER = auto()


class Joined(NamedTuple):
    """The member has an assignment in a new generation; `stay` is the thread's at the join."""

    partitions: list[TopicPartition]
    stay: int
    member_id: str
    generation: int


class Rejoin(NamedTuple):
    """The group rebalances: the member has to give up its partitions and to join again."""


class Lost(NamedTuple):
    """The coordinator does not count this member any more."""

    cause: Cause


class Failed(NamedTuple):
    """The group cannot be joined; the error is the assignor's, the coordinator's or the client's."""

    error: Exception


Event = Joined | Rejoin | Lost | Failed


class GroupThread:
    """Runs one member; `events` are taken by the consumer's thread."""

    def __init__(self, settings: GroupSettings, assignors: Sequence[PartitionAssignor]) -> None:
        self.events: deque[Event] = deque()
        self.settings = settings
        # A heartbeat without a response must not take longer than the session.
        timeout_s = max(_REQUEST_S_MIN, min(_REQUEST_S_MAX, settings.session_s / 2))
        self._brokers = Brokers(
            settings.bootstrap,
            timeout_s=timeout_s,
            client_id=settings.client_id,
            is_proven=True,
            security=settings.security,
        )
        self._member = ClassicMember(settings, assignors, self._brokers)
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_closed = threading.Event()
        self._has_ended = False
        # How often it has joined or left: an earlier join has no result.
        self.stay = 0
        self._subscription: tuple[str, ...] = ()
        # The topics that the member has joined with.
        self._topics: list[str] = []
        # True from an assignment until the member loses it, or joins again.
        self._is_stable = False
        self._has_reported = False
        self._polled_at = self._answered_at = time.monotonic()
        self._heartbeat_at = self._refresh_at = 0.0

    # -- called by the consumer's thread --------------------------------------------------------

    @property
    def member_id(self) -> str:
        """The id in the group; empty before the first join."""
        return self._member.id

    def polled(self) -> None:
        """Note that the consumer is being polled."""
        self._polled_at = time.monotonic()

    def join(self, subscription: Sequence[str], *, is_owner: bool = False) -> None:
        """Join with these topics and patterns, which begin with ^; `Joined` or `Failed` follows,
        unless the member leaves or joins once more.

        An owner keeps its partitions while it joins. If the group removes it before it has an
        assignment, others may own them: `Lost` follows, and it has to join again.
        """
        self.stay += 1
        stay = self.stay
        self._jobs.put(lambda: self._join(tuple(subscription), stay, is_owner=is_owner))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ottla-group", daemon=True)
            self._thread.start()

    def commit(self, offsets: Offsets) -> "Future[int]":
        """Commit after earlier jobs; the result is an error code, 0 for none."""
        done: Future[int] = Future()
        if self._thread is None or not self._is_stable:
            done.set_result(int(ErrorCode.REBALANCE_IN_PROGRESS))
        else:
            self._jobs.put(lambda: self._commit(offsets, done))
        return done

    def leave(self, reason: str) -> None:
        """Leave the group; a static member stays in it until its session is over (KIP-345)."""
        member_id = self._member.id
        self.stay += 1
        self._jobs.put(self._forget)
        if member_id and self.settings.instance_id is None:
            self._send_leave(member_id, reason)

    def close(self) -> None:
        """End the thread; one that waits for the coordinator ends when the coordinator responds."""
        self.stay += 1
        self._is_closed.set()
        self._jobs.put(self._end)
        if self._thread is not None:
            self._thread.join(_PAUSE_S)

    # -- in the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        with self._brokers:
            while not self._has_ended:
                with LoggedErrors(self._fail):
                    self._next_job()()

    def _next_job(self) -> Callable[[], None]:
        """Wait for a job; upkeep that is due comes first, however many jobs there are."""
        idle_s = self._idle_s()
        if idle_s == 0:
            return self._upkeep
        try:
            return self._jobs.get(timeout=idle_s)
        except Empty:
            return self._upkeep

    def _end(self) -> None:
        self._has_ended = True

    def _fail(self, error: Exception) -> None:
        self._is_stable = False
        self.events.append(Failed(error))

    def _idle_s(self) -> float | None:
        if not self._is_stable:
            return None
        due = min(self._heartbeat_at, self._refresh_at, self._late_at())
        return max(0.0, due - time.monotonic())

    def _late_at(self) -> float:
        return self._polled_at + self.settings.rebalance_s

    def _forget(self) -> None:
        self._is_stable = False
        self._member.forget()

    def _join(self, subscription: tuple[str, ...], stay: int, *, is_owner: bool) -> None:
        self._is_stable, self._subscription = False, subscription
        assignment = None
        while assignment is None:
            if stay != self.stay:
                return
            try:
                self._topics = self._matching()
                assignment = self._member.join(self._topics, self._racks)
            except (ApiError, ClientError) as error:
                if not is_passing(error):
                    raise
                self._brokers.forget()
                self._is_closed.wait(_PAUSE_S)
            if assignment is None and is_owner and self._member.generation == NO_GENERATION:
                self._lose(Cause.REMOVED)
                return
        self._answered_at = time.monotonic()
        self._is_stable, self._has_reported = True, False
        self._heartbeat_at = self._answered_at + self.settings.heartbeat_s
        self._refresh_at = self._answered_at + self._refresh_s()
        member = self._member
        self.events.append(Joined(assignment, stay, member.id, member.generation))

    def _commit(self, offsets: Offsets, done: "Future[int]") -> None:
        with LoggedErrors(done.set_exception):
            try:
                done.set_result(self._member.commit(offsets))
            except (NotReachable, TimedOut):
                done.set_result(int(ErrorCode.REQUEST_TIMED_OUT))

    def _upkeep(self) -> None:
        """Do everything that is due: heartbeats, a look at the topics, leaving if polls are late."""
        now = time.monotonic()
        if now >= self._late_at():
            member_id = self._member.id
            self._lose(Cause.LATE_POLL)
            self._member.forget()
            if self.settings.instance_id is None:
                self._send_leave(member_id, "consumer poll timeout has expired")
            return
        try:
            if now >= self._heartbeat_at:
                self._heartbeat_at = now + self.settings.heartbeat_s
                self._heartbeat()
            if self._is_stable and now >= self._refresh_at:
                self._refresh_at = now + self._refresh_s()
                self._look_at_topics()
        except (ApiError, ClientError) as error:
            if not is_passing(error):
                raise
            self._brokers.forget()
            self._heartbeat_at = now + min(_PAUSE_S, self.settings.heartbeat_s)
            if now - self._answered_at > self.settings.session_s:
                self._lose(Cause.SESSION_OVER)

    def _heartbeat(self) -> None:
        verdict = self._member.heartbeat()
        self._answered_at = time.monotonic()
        if verdict is Verdict.REBALANCE:
            self._report_rejoin()
        elif verdict is Verdict.REMOVED:
            self._lose(Cause.REMOVED)

    def _lose(self, cause: Cause) -> None:
        self._is_stable = False
        self.events.append(Lost(cause))

    def _report_rejoin(self) -> None:
        if not self._has_reported:
            self._has_reported = True
            self.events.append(Rejoin())

    def _send_leave(self, member_id: str, reason: str) -> None:
        try:
            leave(self.settings, member_id, reason, _LEAVE_S)
        except (ApiError, ClientError) as error:
            # The group continues without it when its session is over.
            _log.info("the group was not informed that the member leaves: %s", error)

    # -- topics ---------------------------------------------------------------------------------

    def _refresh_s(self) -> float:
        missing = self._member.is_leader and not self._member.racks.keys() >= set(self._topics)
        return min(_MISSING_S, self.settings.refresh_s) if missing else self.settings.refresh_s

    def _look_at_topics(self) -> None:
        """Have the group rebalance if its topics, the numbers of their partitions or, for a member
        with a rack, the racks of these have changed.
        """
        is_old = self._matching() != self._topics
        if not is_old and self._member.is_leader:
            known = self._member.racks
            racks = self._racks(sorted({*known, *self._topics}))
            is_old = _sizes(racks) != _sizes(known)
            is_old |= bool(self.settings.rack) and racks != known
        if is_old:
            self._report_rejoin()

    def _matching(self) -> list[str]:
        names = {name for name in self._subscription if not name.startswith("^")}
        patterns = [re.compile(name) for name in self._subscription if name.startswith("^")]
        if patterns:
            names |= {
                topic.name or ""
                for topic in self._metadata(None).topics
                if not topic.is_internal and any(map(_matches(topic.name or ""), patterns))
            }
        return sorted(names)

    def _racks(self, topics: Sequence[str]) -> PartitionRacks:
        """Return the racks of the partitions of each topic that exists."""
        if not topics:
            return {}
        response = self._metadata(topics)
        rack_of = {broker.node_id: broker.rack for broker in response.brokers}
        return {
            topic.name or "": [
                frozenset(rack for node in row.replica_nodes if (rack := rack_of.get(node)))
                for row in sorted(topic.partitions, key=lambda row: row.partition_index)
            ]
            for topic in response.topics
            if not topic.error_code
        }

    def _metadata(self, topics: Sequence[str] | None) -> MetadataResponse:
        named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(
            topics=named, allow_auto_topic_creation=self.settings.creates_topics
        )
        return self._brokers.ask(request, MetadataResponse)


def _sizes(racks: PartitionRacks) -> dict[str, int]:
    return {topic: len(rows) for topic, rows in racks.items()}


def _matches(name: str) -> Callable[[re.Pattern[str]], bool]:
    return lambda pattern: pattern.match(name) is not None
