"""Fetches of followers: their positions, the end of the log, and where their logs diverge.

A follower reads uncommitted records, up to the end of the log. The offset that it fetches is the
end of its log, so it moves the high watermark and may bring the follower into the ISR. Only a
broker of the cluster is served, on the listener for brokers (CVE-2018-1288). Follows
ReplicaManager.readFromLog and Partition.fetchRecords.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.base.slices import Slices
from ottla.base.tasks import Tasks
from ottla.replication import leading
from ottla.replication.delayed import Watched
from ottla.replication.fetched import RESPONSE_BYTES_MAX
from ottla.replication.isr_updates import IsrUpdates
from ottla.replication.partition import Partition
from ottla.server.fetch.parked import wait
from ottla.server.fetch.reading import (
    FetchBroker,
    FetchContext,
    FetchPass,
    PartitionRead,
    read_each,
)
from ottla.server.fetch.response import response_of
from ottla.server.fetch.sessions import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    Ended,
    FetchPlan,
    FetchSessions,
    PartitionFetch,
)
from ottla.wire.messages.fetch import (
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

if TYPE_CHECKING:
    from ottla.server.fetch import slices
else:
    slices = deferred_module("ottla.server.fetch.slices")

NO_REPLICA = -1
# More partitions are read in slices.
PARTITIONS_AT_ONCE = 200
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


def replica_of(request: FetchRequest) -> tuple[int, int]:
    """Return the broker that fetches and its registration's epoch; (-1, -1) for a consumer."""
    state = request.replica_state
    if state is None:
        return request.replica_id, _UNKNOWN_EPOCH
    return state.replica_id, state.replica_epoch


def refused() -> FetchResponse:
    """Return the response to a sender that has not proven to be the follower."""
    return FetchResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))


def handle(
    context: FollowerContext, request: FetchRequest
) -> "FetchResponse | asyncio.Future[FetchResponse]":
    """Return the records after each position, or wait for some; CLUSTER_AUTHORIZATION_FAILED."""
    replica, broker_epoch = replica_of(request)
    if not context.is_from_broker(replica):
        return refused()
    sessions = context.broker.follower_sessions
    try:
        plan = sessions.begin(request, context.api_version)
    except ApiError as error:
        return FetchResponse(error_code=int(error.code))
    fetch = FollowerFetch(context, request, plan)
    partitions = plan.partitions
    if len(partitions) > PARTITIONS_AT_ONCE:
        work = _read_in_slices(fetch, list(partitions), broker_epoch)
        task = context.broker.tasks.spawn(work, "fetch of a follower of many partitions")
        return sessions.ended_with(plan, task)
    fetch.note_positions(partitions, broker_epoch)
    return sessions.ended_with(plan, fetch.settle(fetch.read(partitions)))


async def _read_in_slices(
    fetch: "FollowerFetch", partitions: Sequence[PartitionFetch], broker_epoch: int
) -> FetchResponse:
    """Note the positions of many partitions and read them, a few at a time."""
    broker = fetch.context.broker
    changes = slices.Changes(broker.replicas.delayed)
    pace = Slices(broker.clock)
    reading = FetchPass()
    try:
        for start in range(0, len(partitions), PARTITIONS_AT_ONCE):
            some = partitions[start : start + PARTITIONS_AT_ONCE]
            fetch.note_positions(some, broker_epoch)
            fetch.read(some, reading=reading)
            changes.watch(reading.partitions[one] for one in some if one in reading.partitions)
            await pace.pause()
            if fetch.context.connection.is_closed:
                # The follower may have sent its next positions already.
                return FetchResponse()
        changed = changes.take_from(reading)
    finally:
        changes.stop()
    response = fetch.settle(reading, changed)
    return await response if isinstance(response, asyncio.Future) else response


class FollowerFetch:
    """One request of a follower.

    While it waits, a wake-up reads the partitions that have changed. The others are read for the
    response, except those whose end the follower has reached.
    """

    __slots__ = (
        "_changed",
        "_fetches",
        "_known",
        "_plan",
        "_refused",
        "_replica",
        "_request",
        "_unfinished",
        "context",
    )

    def __init__(self, context: FollowerContext, request: FetchRequest, plan: FetchPlan) -> None:
        self.context = context
        self._request = request
        self._plan = plan
        self._replica = replica_of(request)[0]
        # The partitions whose positions could not be noted. An exception would keep its frames, and
        # thus this object, until the next full collection.
        self._refused: dict[PartitionFetch, ErrorCode] = {}
        # While the fetch waits: the partitions that it has read, those that have changed since,
        # those with too few bytes, and the results of those that have nothing until they change.
        self._fetches: dict[Watched, PartitionFetch] = {}
        self._changed: dict[PartitionFetch, None] = {}
        self._unfinished: dict[PartitionFetch, None] = {}
        self._known: dict[PartitionFetch, Ended] = {}

    def _find(self, fetch: PartitionFetch) -> Partition:
        replicas = self.context.broker.replicas
        if self.context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            partition = replicas.get_by_id(fetch.topic_id, fetch.partition)
        else:
            partition = replicas.get(fetch.topic, fetch.partition)
        partition.check_leader(fetch.leader_epoch)
        return partition

    def note_positions(self, partitions: Iterable[PartitionFetch], broker_epoch: int) -> None:
        """Record the positions before reading, so that the response has the new high watermark."""
        isr_updates, replica = self.context.broker.isr_updates, self._replica
        for fetch in partitions:
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
                self._refused[fetch] = error.code

    def read(
        self,
        partitions: Iterable[PartitionFetch],
        *,
        only_if_cached: bool = True,
        reading: FetchPass | None = None,
    ) -> FetchPass:
        """Read partitions up to the ends of their logs, as a part of `reading`.

        Known results are taken over.
        """
        broker = self.context.broker
        reading = reading or FetchPass()
        # The limit of the traffic to followers is exceeded (KIP-73).
        throttle = broker.replicas.replication.to_followers
        is_throttled = throttle.is_exceeded(broker.clock.monotonic())

        def read_one(fetch: PartitionFetch, max_bytes: int, at_least_one: bool) -> PartitionRead:
            refused = self._refused.get(fetch)
            if refused is not None:
                raise ApiError(refused)
            partition = self._find(fetch)
            result = _without_records(partition, fetch)
            if result.diverging_epoch is not None:
                reading.must_act = True
                return partition, result, b"", False
            if fetch.offset == partition.log.log_end_offset:
                # Each fetch of a follower outside of the ISR is an occasion to propose it again.
                return partition, result, b"", self._is_in_sync(partition)
            is_held_back = (
                is_throttled and partition.throttled.as_leader and not self._is_in_sync(partition)
            )
            if is_held_back or (max_bytes <= 0 and not at_least_one):
                return partition, result, b"", False
            fetched = partition.read(
                fetch.offset,
                max_bytes,
                partition.log.log_end_offset,
                at_least_one=at_least_one,
                only_if_cached=only_if_cached,
                range_bytes_min=self.context.connection.range_bytes_min,
            )
            records = None if fetched is None else fetched.records
            # The encoder passes on any object that has a length.
            result.records = cast(Buffer, records or b"")
            return partition, result, records, False

        # Whatever other clients have not read: a replica must not fall behind because of them.
        remaining_bytes = min(self._request.max_bytes, RESPONSE_BYTES_MAX) - reading.size_bytes
        return read_each(self.context, partitions, read_one, remaining_bytes, reading, self._known)

    def is_enough(self, reading: FetchPass) -> bool:
        """Return True if the response is worth sending before the timeout."""
        return reading.is_urgent or reading.size_bytes >= self._request.min_bytes

    def _is_in_sync(self, partition: Partition) -> bool:
        return partition.isr is not None and self._replica in partition.isr.isr

    async def _read_cold(self, reading: FetchPass) -> FetchResponse:
        """Read the bytes into the page cache, then read as usual."""
        await reading.warm()
        return self.expire()

    def settle(
        self, reading: FetchPass, changed: Iterable[Watched] = ()
    ) -> "FetchResponse | asyncio.Future[FetchResponse]":
        """Respond after a pass over all partitions of the plan, or wait until it is worth it.

        `changed` have changed since they were read.
        """
        plan, request = self._plan, self._request
        if reading.cold:
            work = self._read_cold(reading)
            return self.context.broker.tasks.spawn(work, "cold fetch of a follower")
        if self.is_enough(reading) or request.max_wait_ms <= 0 or plan.is_empty:
            return self.respond(reading)
        self._fetches = {partition: fetch for fetch, partition in reading.partitions.items()}
        self._keep(reading)
        for partition in changed:
            self.note(partition)
        response = self.check() if self._changed else None
        return response or wait(self.context, request, plan, reading, self)

    def resume(
        self, fetch: PartitionFetch, partition: Partition, changed: Sequence[Watched]
    ) -> "FetchResponse | asyncio.Future[FetchResponse]":
        """Continue to wait for the session: `fetch` has read its partition up to the end.

        `changed` are the partitions of the session that have changed since then.
        """
        reading = FetchPass()
        reading.partitions[fetch] = partition
        self._fetches[partition] = fetch
        for one in changed:
            assert isinstance(one, Partition)
            self.note(one)
            noted = self._fetch_of(one)
            if noted is not None:
                reading.partitions[noted] = one
        response = self.check()
        return response or wait(self.context, self._request, self._plan, reading, self)

    def _keep(self, reading: FetchPass) -> None:
        """Note what a pass without enough bytes has found."""
        self._known.update((ended[0], ended) for ended in reading.ended)
        self._unfinished.update((fetch, None) for fetch, data in reading.results if data.records)

    def note(self, changed: Watched) -> None:
        """Remember that a partition has to be read again."""
        fetch = self._fetch_of(changed)
        if fetch is not None:
            self._known.pop(fetch, None)
            self._changed[fetch] = None

    def _fetch_of(self, changed: Watched) -> PartitionFetch | None:
        assert isinstance(changed, Partition)
        fetch, session = self._fetches.get(changed), self._plan.session
        if fetch is None and session is not None:
            # It was idle until now.
            fetch = session.fetch_of(changed)
        return fetch

    def check(self) -> FetchResponse | None:
        """Return the response if it is worth sending, now that partitions have changed.

        After a change of very many partitions, an incremental response has the first of them that
        are worth it. The others stay due, and the next request reads them in slices.
        """
        changed = list(self._changed | self._unfinished)
        self._changed.clear()
        self._unfinished.clear()
        reading = FetchPass()
        for start in range(0, len(changed), PARTITIONS_AT_ONCE):
            some = changed[start : start + PARTITIONS_AT_ONCE]
            self.read(some, only_if_cached=False, reading=reading)
            if self.is_enough(reading):
                if not self._plan.is_incremental:
                    return self.expire()
                for known in self._known.values():
                    reading.results.append((known[0], known[1]))
                    reading.ended.append(known)
                return self.respond(reading)
        self._keep(reading)
        return None

    def expire(self) -> FetchResponse:
        """Return the response with the available records, from the disk if necessary."""
        return self.respond(self.read(self._plan.partitions, only_if_cached=False))

    def respond(self, reading: FetchPass) -> FetchResponse:
        """Return the response, and count the records that it has."""
        broker = self.context.broker
        for fetch, partition_data in reading.results:
            if partition_data.records:
                partition = reading.partitions[fetch]
                broker.replicas.replication.sent(
                    len(partition_data.records),
                    broker.clock.monotonic(),
                    throttled=partition.throttled.as_leader,
                    added=self._replica in partition.adding_replicas,
                )
        return response_of(self._plan, reading)


def _without_records(partition: Partition, fetch: PartitionFetch) -> PartitionData:
    """Return the offsets of a partition for a follower, and where its log diverges if it does."""
    result = PartitionData(
        partition_index=fetch.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.high_watermark,
        log_start_offset=partition.log.log_start_offset,
        records=b"",
    )
    diverging = leading.divergence(partition, fetch.last_fetched_epoch, fetch.offset)
    if diverging is not None:
        result.diverging_epoch = EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
    return result
