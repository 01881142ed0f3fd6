"""The fetchers of a broker: one task for each leader that it follows.

A fetcher sends one request after the other and appends the records of each response before the next
request, so that the position in a request is the end of this replica's log. Follows
ReplicaFetcherManager and ReplicaFetcherThread.

Not done: num.replica.fetchers; one event loop appends as fast as several fetchers would.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode, StorageError
from ottla.base.loading import deferred_module
from ottla.base.slices import Slices
from ottla.base.tasks import Tasks
from ottla.cluster.image import NO_LEADER
from ottla.net.requests import RequestChannel
from ottla.replication import following
from ottla.replication.fetch_session import Key
from ottla.replication.follower_fetches import (
    VERSION,
    Diverged,
    Effect,
    FetchedPartition,
    Followed,
    FollowerFetches,
    FollowerFetchLimits,
    OutOfRange,
)
from ottla.replication.partition import Partition
from ottla.replication.traffic.throttle import ReplicationTraffic
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from ottla.wire import follower_fetch
    from ottla.wire.follower_fetch import LeaderRecords
else:
    follower_fetch = deferred_module("ottla.wire.follower_fetch")

_log = logging.getLogger(__name__)

_LIST_OFFSETS_VERSION = 9
_LATEST = -1
_EARLIEST = -2
# The sum of now and the rest of a pause may be a moment before its end, by rounding: without this,
# the fetcher would wait for nothing again and again.
_PAUSE_SECONDS_MIN = 0.001
# A new partition interrupts a fetch that waits for records, at most this often in seconds.
INTERRUPTION_SECONDS = 0.1


def _ignore(leader: int) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """Objects that all fetchers of a broker share.

    `connect` returns the channel to a broker, None while its address is unknown; `broker_epoch` is
    the epoch of this broker's registration; `timeout_seconds` limits one request. `lost` is called
    if the connection to a leader was closed or refused, and `fetched` when the leader responds
    again.
    """

    node_id: int
    clock: Clock
    tasks: Tasks
    connect: Callable[[int], RequestChannel | None]
    broker_epoch: Callable[[], int]
    limits: Callable[[], FollowerFetchLimits]
    traffic: ReplicationTraffic
    timeout_seconds: Callable[[], float]
    lost: Callable[[int], None] = _ignore
    fetched: Callable[[int], None] = _ignore


class ReplicaFetchers:
    """The partitions that this broker follows, by leader."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        # Set when the broker gives up its leaders in order to stop.
        self.is_leaving = False
        self.truncations = following.Truncations(dependencies.tasks)
        self._by_leader: dict[int, LeaderFetcher] = {}
        self._leader_of: dict[Key, int] = {}

    def update(self, partition: Partition, isr: Collection[int]) -> None:
        """Fetch a partition from the leader of a new epoch, if it is another broker."""
        # A broker that leaves and is no longer in sync would be proposed for the ISR again.
        has_left = self.is_leaving and self._dependencies.node_id not in isr
        if partition.is_leader or partition.leader == NO_LEADER or has_left:
            self.unfollow(partition)
        else:
            self.follow(partition)

    def follow(self, partition: Partition) -> None:
        """Fetch a partition from its leader, beginning at the end of its log."""
        key = (partition.topic_id, partition.partition)
        leader = partition.leader
        if self._leader_of.get(key) not in (None, leader):
            self.unfollow(partition)
        fetcher = self._by_leader.get(leader)
        if fetcher is None:
            fetcher = self._by_leader[leader] = LeaderFetcher(
                leader, self._dependencies, self.truncations
            )
        self._leader_of[key] = leader
        fetcher.follow(partition, key)

    def unfollow(self, partition: Partition) -> None:
        """Stop fetching a partition; records that arrive later are ignored."""
        key = (partition.topic_id, partition.partition)
        leader = self._leader_of.pop(key, None)
        if leader is None:
            return
        fetcher = self._by_leader[leader]
        fetcher.unfollow(key)
        if not len(fetcher.fetches):
            del self._by_leader[leader]
            fetcher.stop()

    def fetchers(self) -> Iterable["LeaderFetcher"]:
        """Return the fetchers, for metrics."""
        return list(self._by_leader.values())

    def close(self) -> None:
        """Stop all fetchers."""
        for fetcher in self._by_leader.values():
            fetcher.stop()
        self._by_leader.clear()
        self._leader_of.clear()


class LeaderFetcher:
    """Fetches from one leader until it is stopped."""

    def __init__(
        self, leader: int, dependencies: Dependencies, truncations: following.Truncations
    ) -> None:
        self.leader = leader
        self.fetches = FollowerFetches(dependencies.node_id)
        self.fetched_bytes = 0
        self._dependencies = dependencies
        self._truncations = truncations
        self._partitions: dict[Key, Partition] = {}
        # With flush.on.ack: logs whose end is not durable yet, as after a restart.
        self._undurable: dict[Key, Followed] = {}
        self._changed = asyncio.Event()
        self._channel: RequestChannel | None = None
        self._is_waiting = self._is_interrupted = self._is_lost = False
        self._interrupted_at = float("-inf")
        self._task = dependencies.tasks.supervise(self._run, "replica fetcher", f"broker {leader}")

    def follow(self, partition: Partition, key: Key) -> None:
        """Fetch a partition from now on, in its present leader epoch."""
        self._partitions[key] = partition
        followed = following.begin(partition, key)
        self.fetches.follow(followed)
        if not following.is_durable(partition):
            self._undurable[key] = followed
        self._changed.set()
        self._interrupt()

    def unfollow(self, key: Key) -> None:
        """Stop fetching a partition."""
        self._partitions.pop(key, None)
        self._undurable.pop(key, None)
        self.fetches.unfollow(key)
        self._changed.set()

    def stop(self) -> None:
        """End the task and the connection."""
        self._task.cancel()
        if self._channel is not None:
            self._channel.close()

    def _interrupt(self) -> None:
        """End a request that waits for records: it does not contain the new partition."""
        now = self._dependencies.clock.monotonic()
        if self._is_waiting and now - self._interrupted_at >= INTERRUPTION_SECONDS:
            self._interrupted_at = now
            self._is_interrupted = True
            if self._channel is not None:
                self._channel.disconnect()

    async def _run(self) -> None:
        clock = self._dependencies.clock
        while True:
            self._changed.clear()
            limits = self._dependencies.limits()
            channel = self._connect()
            if channel is None:
                await self._pause(limits.backoff_seconds)
                continue
            self._hold_throttled(clock.monotonic(), limits)
            if self._undurable:
                await self._flush_recovered()
            fetched = self._send(channel, limits)
            if fetched is None:
                await self._pause(None)
                continue
            self._is_waiting, self._is_interrupted = True, False
            try:
                response = await fetched
            except OSError as error:
                self._failed(error, limits)
                continue
            finally:
                self._is_waiting = False
            if self._is_lost:
                self._is_lost = False
                self._dependencies.fetched(self.leader)
            if isinstance(response, FetchResponse):
                effects = self.fetches.received(response, clock.monotonic(), limits.backoff_seconds)
            else:
                effects = self.fetches.received_records(response)
            await self._perform(effects)

    def _send(
        self, channel: RequestChannel, limits: FollowerFetchLimits
    ) -> "Awaitable[FetchResponse | LeaderRecords] | None":
        """Send the next request; None if no partition is due."""
        now, broker_epoch = self._dependencies.clock.monotonic(), self._dependencies.broker_epoch()
        seconds = self._dependencies.timeout_seconds() + limits.wait_ms / 1000
        if channel.is_connected:
            move = self.fetches.next_move(now, broker_epoch, limits)
            if move is not None:
                body = follower_fetch.request_body(move)
                read = follower_fetch.read_response
                return channel.send_body(FetchRequest, VERSION, body, read, seconds=seconds)
        request = self.fetches.next_request(now, broker_epoch, limits)
        if request is None:
            return None
        response = channel.request(request, VERSION, seconds=seconds)
        return cast("Awaitable[FetchResponse]", response)

    def _hold_throttled(self, now: float, limits: FollowerFetchLimits) -> None:
        """Leave replicas that are throttled and not caught up out of the next request (KIP-73)."""
        throttle = self._dependencies.traffic.from_leaders
        if throttle.is_exceeded(now):
            # The limit may be raised during the wait.
            until = now + min(throttle.seconds_left(now), limits.backoff_seconds)
            for key, partition in self._partitions.items():
                if partition.throttled.as_follower:
                    self.fetches.hold(key, until)

    async def _flush_recovered(self) -> None:
        """Make the ends of newly followed logs durable: the leader counts a position as stored.

        That includes logs that are followed during the flushes: they are in the next request, too.
        """
        tried: dict[Key, Followed] = {}
        while untried := [
            (key, followed)
            for key, followed in self._undurable.items()
            if tried.get(key) is not followed
        ]:
            for key, followed in untried:
                tried[key] = followed
                await self._flush_one(key, followed)

    async def _flush_one(self, key: Key, followed: Followed) -> None:
        partition = self._partitions.get(key)
        if partition is None or self._undurable.get(key) is not followed:
            return
        try:
            await self._flush(followed, partition)
        except (StorageError, OSError) as error:
            self._delay(followed, error)
            if not followed.is_failed:
                return
        if self._undurable.get(key) is followed:
            del self._undurable[key]

    async def _flush(self, followed: Followed, partition: Partition) -> None:
        """Flush a log to its end; one flush may miss it if the log changes during the flush."""
        while self._is_valid(followed, partition) and not following.is_durable(partition):
            await partition.log.durability.flush_in_background()

    def _connect(self) -> RequestChannel | None:
        """Return the channel to the leader's present address; None while that is unknown."""
        channel = self._dependencies.connect(self.leader)
        if channel is not self._channel and self._channel is not None:
            self._channel.close()
        self._channel = channel
        return channel

    def _failed(self, error: OSError, limits: FollowerFetchLimits) -> None:
        now = self._dependencies.clock.monotonic()
        if self._is_interrupted:
            # Interrupted for a new partition: fetch all of them again at once.
            self.fetches.interrupted(now, 0.0)
            return
        if isinstance(error, ConnectionError):
            self._is_lost = True
            self._dependencies.lost(self.leader)
        _log.info("fetch failed leader=%d error=%s", self.leader, error)
        self.fetches.interrupted(now, limits.backoff_seconds)

    async def _pause(self, seconds: float | None) -> None:
        """Wait until a partition is due or the partitions change."""
        if seconds is None:
            due_at = self.fetches.next_due_at()
            if due_at is not None:
                wait = due_at - self._dependencies.clock.monotonic()
                seconds = max(_PAUSE_SECONDS_MIN, wait)
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _perform(self, effects: list[Effect]) -> None:
        if len(effects) == 1:
            await self._attempt(effects[0])
            return
        slices = Slices(self._dependencies.clock)
        for effect in effects:
            if isinstance(effect, FetchedPartition):
                await self._attempt(effect)
                await slices.pause()
        # Logs that have to be truncated wait for the device together.
        truncations = [
            self._attempt(effect) for effect in effects if not isinstance(effect, FetchedPartition)
        ]
        if truncations:
            await asyncio.gather(*truncations)

    async def _attempt(self, effect: Effect) -> None:
        followed = effect.followed
        partition = self._partitions.get(followed.key)
        if partition is None or not self._is_valid(followed, partition):
            return
        try:
            await self._apply(effect, partition)
        except (ApiError, StorageError, OSError) as error:
            self._delay(followed, error)

    def _is_valid(self, followed: Followed, partition: Partition) -> bool:
        return self.fetches.is_current(followed) and following.is_following(
            partition, followed.leader_epoch
        )

    async def _apply(self, effect: Effect, partition: Partition) -> None:
        followed = effect.followed
        if isinstance(effect, FetchedPartition):
            following.append(partition, effect.data)
            followed.lag = max(0, effect.data.high_watermark - partition.log.log_end_offset)
            self._count(partition, len(effect.data.records or b""))
            if partition.log.config.flush_on_ack:
                # The leader considers everything below the next position as stored here.
                await self._flush(followed, partition)
        elif isinstance(effect, Diverged):
            offset = following.truncation_offset(partition, effect.epoch, effect.end_offset)
            await self._truncations.run(partition, following.truncate, offset)
        else:
            await self._find_start(effect, partition)
        if self._is_valid(followed, partition):
            following.synchronize(partition, followed)

    def _count(self, partition: Partition, size_bytes: int) -> None:
        self.fetched_bytes += size_bytes
        self._dependencies.traffic.received(
            size_bytes,
            self._dependencies.clock.monotonic(),
            throttled=partition.throttled.as_follower,
            added=self._dependencies.node_id in partition.adding_replicas,
        )

    async def _find_start(self, effect: OutOfRange, partition: Partition) -> None:
        """Continue within the leader's log; see AbstractFetcherThread.fetchOffsetAndTruncate."""
        followed = effect.followed
        log = partition.log
        leader_end = await self._leader_offset(followed, partition, _LATEST)
        if leader_end < log.log_end_offset:
            # An unclean election: this replica has records that the leader never had.
            if self._is_valid(followed, partition):
                await self._truncations.run(partition, following.truncate, leader_end)
            return
        leader_start = await self._leader_offset(followed, partition, _EARLIEST)
        if leader_start > log.log_end_offset and self._is_valid(followed, partition):
            await self._truncations.run(partition, following.start_at, leader_start)

    async def _leader_offset(self, followed: Followed, partition: Partition, timestamp: int) -> int:
        requested = ListOffsetsPartition(
            partition_index=partition.partition,
            current_leader_epoch=followed.leader_epoch,
            timestamp=timestamp,
        )
        request = ListOffsetsRequest(
            replica_id=self._dependencies.node_id,
            topics=[ListOffsetsTopic(name=partition.topic, partitions=[requested])],
        )
        assert self._channel is not None
        response = await self._channel.request(
            request, _LIST_OFFSETS_VERSION, seconds=self._dependencies.timeout_seconds()
        )
        assert isinstance(response, ListOffsetsResponse)
        (topic,) = response.topics
        (result,) = topic.partitions
        if result.error_code:
            raise ApiError(ErrorCode(result.error_code))
        return result.offset

    def _delay(self, followed: Followed, error: Exception) -> None:
        limits = self._dependencies.limits()
        followed.due_at = self._dependencies.clock.monotonic() + limits.backoff_seconds
        # A failed log directory takes its partitions offline, which ends following.
        followed.is_failed = isinstance(error, StorageError)
        _log.warning(
            "records not appended partition=%s-%d leader=%d error=%s",
            followed.topic, followed.key[1], self.leader, error,
        )  # fmt: skip
