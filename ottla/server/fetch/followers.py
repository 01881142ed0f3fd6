"""Fetches of followers: their positions, the end of the log, and where their logs diverge.

A follower reads uncommitted records, up to the end of the log. The offset that it fetches is the
end of its log, so it moves the high watermark and may bring the follower into the ISR. Only a
broker of the cluster is served, on the listener for brokers (CVE-2018-1288). Follows
ReplicaManager.readFromLog and Partition.fetchRecords.
"""

import asyncio
from typing import Protocol, cast

from ottla.base.buffers import Buffer, Part
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.tasks import Tasks
from ottla.replication import leading
from ottla.replication.delayed import FETCH, Watched
from ottla.replication.fetched import RESPONSE_BYTES_MAX
from ottla.replication.isr_updates import IsrUpdates
from ottla.replication.partition import Partition
from ottla.server.fetch.reading import FetchBroker, FetchContext, failure
from ottla.server.fetch.sessions import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    Ended,
    FetchPlan,
    FetchSessions,
    PartitionFetch,
)
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

NO_REPLICA = -1
_UNKNOWN_EPOCH = -1


class FollowerBroker(FetchBroker, Protocol):
    """The parts of a leader that fetches of followers need."""

    @property
    def tasks(self) -> Tasks:
        """The background tasks of the broker."""
        ...

    @property
    def follower_sessions(self) -> FetchSessions:
        """The sessions of followers."""
        ...

    @property
    def isr_updates(self) -> IsrUpdates:
        """The changes of the ISR that this leader proposes."""
        ...


class FollowerContext(FetchContext, Protocol):
    """The parts of a request's context that a fetch of a follower needs."""

    @property
    def broker(self) -> FollowerBroker:
        """The leader."""
        ...

    def is_from_broker(self, broker_id: int) -> bool:
        """Return True if the sender has proven to be this broker."""
        ...


DiskRead = tuple[Partition, int, int]
PartitionResult = tuple[PartitionFetch, PartitionData]


def replica_of(request: FetchRequest) -> tuple[int, int]:
    """Return the broker that fetches and its registration's epoch; (-1, -1) for a consumer."""
    state = request.replica_state
    if state is None:
        return request.replica_id, _UNKNOWN_EPOCH
    return state.replica_id, state.replica_epoch


def handle(
    context: FollowerContext, request: FetchRequest
) -> "FetchResponse | asyncio.Future[FetchResponse]":
    """Return the records after each position, or wait for some; CLUSTER_AUTHORIZATION_FAILED."""
    replica, broker_epoch = replica_of(request)
    if not context.is_from_broker(replica):
        return FetchResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    try:
        plan = context.broker.follower_sessions.begin(request, context.api_version)
    except ApiError as error:
        return FetchResponse(error_code=int(error.code))
    fetch = _FollowerFetch(context, request, plan)
    fetch.note_positions(broker_epoch)
    fetch.read()
    if fetch.cold:
        return context.broker.tasks.spawn(fetch.read_cold(), "cold fetch of a follower")
    if fetch.is_enough or request.max_wait_ms <= 0 or plan.is_empty:
        return fetch.respond()
    return fetch.wait()


class _FollowerFetch:
    """One request of a follower; `read` may be repeated while it waits."""

    __slots__ = (
        "_context",
        "_ended",
        "_is_throttled",
        "_is_urgent",
        "_partitions",
        "_plan",
        "_refused",
        "_replica",
        "_request",
        "_results",
        "_size_bytes",
        "cold",
    )

    def __init__(self, context: FollowerContext, request: FetchRequest, plan: FetchPlan) -> None:
        self._context = context
        self._request = request
        self._plan = plan
        self._replica = replica_of(request)[0]
        # The partitions whose positions could not be noted.
        self._refused: dict[PartitionFetch, ApiError] = {}
        self._start()

    def _start(self) -> None:
        self._results: list[PartitionResult] = []
        self._partitions: dict[PartitionFetch, Partition] = {}
        self._ended: list[Ended] = []
        self.cold: list[DiskRead] = []
        self._size_bytes = 0
        # The limit of the traffic to followers is exceeded (KIP-73).
        broker = self._context.broker
        throttle = broker.replicas.replication.to_followers
        self._is_throttled = throttle.is_exceeded(broker.clock.monotonic())
        # The follower has to act, although there are no records.
        self._is_urgent = False

    @property
    def is_enough(self) -> bool:
        """True if the response is worth sending before the timeout."""
        return self._is_urgent or self._size_bytes >= self._request.min_bytes

    def _find(self, fetch: PartitionFetch) -> Partition:
        replicas = self._context.broker.replicas
        if self._context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            partition = replicas.get_by_id(fetch.topic_id, fetch.partition)
        else:
            partition = replicas.get(fetch.topic, fetch.partition)
        partition.check_leader(fetch.leader_epoch)
        return partition

    def note_positions(self, broker_epoch: int) -> None:
        """Record the positions before reading, so that the response has the new high watermark."""
        isr_updates, replica = self._context.broker.isr_updates, self._replica
        for fetch in self._plan.partitions:
            try:
                partition = self._find(fetch)
                if (
                    leading.divergence(partition, fetch.last_fetched_epoch, fetch.offset)
                    is not None
                ):
                    continue
                if (
                    not partition.log.log_start_offset
                    <= fetch.offset
                    <= partition.log.log_end_offset
                ):
                    continue
                partition.follower_fetched(
                    replica, fetch.offset, fetch.log_start_offset, broker_epoch
                )
                isr_updates.follower_fetched(partition, replica)
            except ApiError as error:
                self._refused[fetch] = error

    def read(self, *, only_if_cached: bool = True) -> None:
        """Read every partition of the plan up to the end of its log."""
        self._start()
        # Whatever other clients have not read: a replica must not fall behind because of them.
        remaining_bytes = min(self._request.max_bytes, RESPONSE_BYTES_MAX)
        for fetch in self._plan.partitions:
            try:
                refused = self._refused.get(fetch)
                if refused is not None:
                    raise refused
                partition_data = self._read(fetch, remaining_bytes, only_if_cached=only_if_cached)
            except ApiError as error:
                partition_data = failure(self._context, fetch, error)
                self._is_urgent = True
            size_bytes = len(partition_data.records or b"")
            remaining_bytes -= size_bytes
            self._size_bytes += size_bytes
            self._results.append((fetch, partition_data))

    def _read(
        self, fetch: PartitionFetch, remaining_bytes: int, *, only_if_cached: bool
    ) -> PartitionData:
        partition = self._find(fetch)
        self._partitions[fetch] = partition
        log = partition.log
        partition_data = PartitionData(
            partition_index=fetch.partition,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.high_watermark,
            log_start_offset=log.log_start_offset,
            records=b"",
        )
        diverging = leading.divergence(partition, fetch.last_fetched_epoch, fetch.offset)
        if diverging is not None:
            partition_data.diverging_epoch = EpochEndOffset(
                epoch=diverging[0], end_offset=diverging[1]
            )
            self._is_urgent = True
            return partition_data
        if fetch.offset == log.log_end_offset:
            # Each fetch of a follower outside of the ISR is an occasion to propose it again.
            if self._is_in_sync(partition):
                self._ended.append((fetch, partition_data, partition))
            return partition_data
        if self._is_throttled and partition.throttled.as_leader and not self._is_in_sync(partition):
            return partition_data
        max_bytes = min(fetch.max_bytes, remaining_bytes)
        is_first = self._size_bytes == 0
        if max_bytes > 0 or is_first:
            records = self._records(partition, fetch.offset, max_bytes, only_if_cached, is_first)
            # The encoder passes on any object that has a length.
            partition_data.records = cast(Buffer, records)
        return partition_data

    def _is_in_sync(self, partition: Partition) -> bool:
        return partition.isr is not None and self._replica in partition.isr.isr

    def _records(
        self,
        partition: Partition,
        offset: int,
        max_bytes: int,
        only_if_cached: bool,
        at_least_one: bool,
    ) -> Part:
        fetched = partition.read(
            offset,
            max_bytes,
            partition.log.log_end_offset,
            at_least_one=at_least_one,
            only_if_cached=only_if_cached,
            range_bytes_min=self._context.connection.range_bytes_min,
        )
        if fetched is None:
            self.cold.append((partition, offset, max_bytes))
            return b""
        return fetched.records

    async def read_cold(self) -> FetchResponse:
        """Read the bytes into the page cache, then read as usual."""
        for partition, offset, max_bytes in self.cold:
            await partition.warm(offset, max_bytes)
        self.read(only_if_cached=False)
        return self.respond()

    def wait(self) -> "asyncio.Future[FetchResponse]":
        """Wait until a partition has records, or for the request's time."""
        plan = self._plan
        watched: list[Watched] = []
        if plan.session is not None and plan.is_incremental:
            plan.wait_on_idle(self._ended)
            watched.append(plan.session)
            due = set(plan.partitions)
            watched += [partition for fetch, partition in self._partitions.items() if fetch in due]
        else:
            watched += self._partitions.values()
        return self._context.broker.replicas.delayed.wait(
            watched,
            check=self._check,
            expire=self._expire,
            seconds=self._request.max_wait_ms / 1000,
            kind=FETCH,
        )

    def _check(self, changed: Watched) -> FetchResponse | None:
        self.read(only_if_cached=False)
        return self.respond() if self.is_enough else None

    def _expire(self) -> FetchResponse:
        self.read(only_if_cached=False)
        return self.respond()

    def respond(self) -> FetchResponse:
        """Return the response with the partitions that have something new for the follower."""
        responses: list[FetchableTopicResponse] = []
        last: FetchableTopicResponse | None = None
        for fetch, partition_data in self._plan.included(self._results):
            self._count(fetch, partition_data)
            if last is None or last.topic != fetch.topic or last.topic_id != fetch.topic_id:
                last = FetchableTopicResponse(topic=fetch.topic, topic_id=fetch.topic_id)
                responses.append(last)
            last.partitions.append(partition_data)
        self._plan.wait_on_idle(self._ended)
        return FetchResponse(session_id=self._plan.session_id, responses=responses)

    def _count(self, fetch: PartitionFetch, partition_data: PartitionData) -> None:
        size_bytes, partition = len(partition_data.records or b""), self._partitions.get(fetch)
        if size_bytes and partition is not None:
            broker = self._context.broker
            broker.replicas.replication.sent(
                size_bytes,
                broker.clock.monotonic(),
                throttled=partition.throttled.as_leader,
                added=self._replica in partition.adding_replicas,
            )
