"""Twins of librdkafka's consumer and producer over the model of a cluster."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from ottla.base.rng import SeededRng
from ottla.client.group.identities import decode_metadata
from ottla.client.records import TopicPartition
from ottla.testing.sim.loop import Process
from ottla.wire.records.murmur2 import murmur2
from tests.sim.streams.logs import Entry, Fenced, ModelCluster, ModelProducerState
from tests.sim.streams.threads import ProcessKilled, SimThreads

_EARLIEST, _LATEST = -2, -1
_CREATE_TIME = 1


class ProcessPorts(NamedTuple):
    """The world of one process, for its clients."""

    cluster: ModelCluster
    threads: SimThreads
    process: Process
    rng: SeededRng
    slow_s: float = 0.005
    """The longest time of a request."""

    def enter(self) -> None:
        """Raise ProcessKilled if the process is dead: its calls have no effect."""
        if not self.process.is_alive:
            raise ProcessKilled

    def request(self) -> None:
        """Let a request take its time."""
        self.enter()
        self.threads.pass_some(self.slow_s)


class ModelMessage:
    """A record that was read, or the error of a partition."""

    def __init__(
        self, key: TopicPartition, offset: int, entry: Entry | None, error: KafkaError | None
    ) -> None:
        self._key, self._offset, self._entry, self._error = key, offset, entry, error

    def topic(self) -> str:
        """Return the topic."""
        return self._key.topic

    def partition(self) -> int:
        """Return the partition."""
        return self._key.partition

    def offset(self) -> int:
        """Return the offset of the record, or of the end."""
        return self._offset

    def error(self) -> KafkaError | None:
        """Return the error; None for a record."""
        return self._error

    def __getattr__(self, field: str) -> Callable[[], Any]:
        """Return a method that returns a field of the record."""
        assert self._entry is not None
        value = getattr(self._entry, field)
        return lambda: value

    def timestamp(self) -> tuple[int, int]:
        """Return the type of the timestamp, and the timestamp."""
        assert self._entry is not None
        return _CREATE_TIME, self._entry.timestamp

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """Return the headers."""
        assert self._entry is not None
        return list(self._entry.headers) or None


class ModelConsumer:
    """Reads assigned partitions, each when the seed decides."""

    def __init__(self, ports: ProcessPorts, settings: Mapping[str, Any]) -> None:
        self._ports = ports
        self._is_committed = settings["isolation.level"] == "read_committed"
        self._positions: dict[TopicPartition, int] = {}
        self._visible: dict[TopicPartition, float] = {}
        self._reported_ends: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()

    def incremental_assign(self, partitions: Sequence[Any]) -> None:
        """Read these partitions, too."""
        self._ports.enter()
        now = self._ports.cluster.loop.time()
        for row in partitions:
            key = TopicPartition(row.topic, row.partition)
            log = self._ports.cluster.log(key)
            starts = {_EARLIEST: log.start, _LATEST: log.end}
            self._positions[key] = starts.get(row.offset, row.offset)
            self._reported_ends.pop(key, None)
            # Each partition has its first response at another time.
            self._visible[key] = now + self._ports.rng.below(300) / 1000

    def incremental_unassign(self, partitions: Sequence[Any]) -> None:
        """Stop reading partitions."""
        self._ports.enter()
        for row in partitions:
            key = TopicPartition(row.topic, row.partition)
            del self._positions[key]
            self._paused.discard(key)

    def pause(self, partitions: Sequence[Any]) -> None:
        """Pause partitions."""
        self._ports.enter()
        self._paused |= {TopicPartition(row.topic, row.partition) for row in partitions}

    def resume(self, partitions: Sequence[Any]) -> None:
        """Continue partitions."""
        self._ports.enter()
        self._paused -= {TopicPartition(row.topic, row.partition) for row in partitions}

    def get_watermark_offsets(self, partition: Any, *, cached: bool) -> tuple[int, int]:
        """Return the first offset and the high watermark."""
        log = self._ports.cluster.log(TopicPartition(partition.topic, partition.partition))
        return log.start, log.end

    def consume(self, most: int, timeout_s: float) -> list[ModelMessage]:
        """Return some records, or reports of ends; wait for them up to a time."""
        ports = self._ports
        ports.enter()
        most = min(most, 1 + ports.rng.below(20))
        messages = self._fetch(most)
        if not messages and timeout_s:
            ports.threads.wait(timeout_s)
            ports.enter()
            messages = self._fetch(most)
        if messages:
            ports.request()
        return messages

    def _fetch(self, most: int) -> list[ModelMessage]:
        cluster, rng = self._ports.cluster, self._ports.rng
        keys = sorted(self._positions.keys() - self._paused)
        rng.shuffle(keys)
        now = cluster.loop.time()
        messages: list[ModelMessage] = []
        for key in keys:
            if len(messages) >= most:
                break
            if cluster.is_stalled(key) or self._visible[key] > now:
                continue
            messages += self._of(key, most - len(messages))
            if rng.below(10) == 0:
                self._visible[key] = now + rng.below(100) / 1000
        return messages

    def _of(self, key: TopicPartition, most: int) -> list[ModelMessage]:
        log, position = self._ports.cluster.log(key), self._positions[key]
        if position < log.start:
            return [ModelMessage(key, position, None, KafkaError(KafkaError._AUTO_OFFSET_RESET))]
        messages = []
        for row in log.read(position, is_committed=self._is_committed):
            messages.append(ModelMessage(key, row.offset, row, None))
            if len(messages) == most:
                break
        if messages:
            self._positions[key] = messages[-1].offset() + 1
            return messages
        end = self._positions[key] = max(position, log.limit(is_committed=self._is_committed))
        if self._reported_ends.get(key) == end:
            return []
        self._reported_ends[key] = end
        return [ModelMessage(key, end, None, KafkaError(KafkaError._PARTITION_EOF))]

    def close(self) -> None:
        """Close the consumer."""
        self._ports.enter()


class Unsent(NamedTuple):
    """A record in the queue of a producer."""

    key: TopicPartition
    row: tuple[bytes | None, bytes | None, int, Any]
    report: Callable[[Any, Any], None]


class ModelProducer:
    """Writes records in the background, in order."""

    def __init__(self, ports: ProcessPorts, settings: Mapping[str, Any]) -> None:
        self._ports = ports
        self._id: str = settings.get("transactional.id", "")
        self._timeout_s = settings.get("transaction.timeout.ms", 60_000) / 1000
        self._report = settings["on_delivery"]
        self._queue: list[Unsent] = []
        self._reports: list[Callable[[], None]] = []
        self._state: ModelProducerState | None = None
        self._epoch = 0
        self._fails_with: KafkaError | None = None
        self._is_closed = False
        self._is_sending = False
        # Requests that the kernel has already sent arrive.
        ports.process.on_kill(self._last_requests)

    async def _send_slowly(self) -> None:
        while self._queue:
            await asyncio.sleep(self._ports.rng.below(60) / 1000)
            self._send(1 + self._ports.rng.below(20))
        self._is_sending = False

    def _last_requests(self) -> None:
        if not self._is_closed:
            self._send(self._ports.rng.below(1 + len(self._queue)))

    def _send(self, most: int) -> None:
        """Append the first records of the queue to their partitions."""
        while self._queue and most > 0 and not self._ports.cluster.is_stalled(self._queue[0].key):
            most -= 1
            record = self._queue.pop(0)
            try:
                offset = self._append(record)
            except Fenced:
                self._fails_with = KafkaError(KafkaError._FENCED, "fenced", True)
                self._note(record, self._fails_with, -1)
                return
            self._note(record, None, offset)

    def _note(self, record: Unsent, error: KafkaError | None, offset: int) -> None:
        message = ModelMessage(record.key, offset, None, error)
        self._reports.append(lambda: record.report(error, message))

    def _append(self, record: Unsent) -> int:
        cluster, number = self._ports.cluster, None
        if self._state is not None:
            cluster.transaction(self._state, self._epoch).partitions.add(record.key)
            number = self._state.number
        return cluster.log(record.key).append(*record.row, producer=number)

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        *,
        timestamp: int,
        headers: Any = (),
        partition: int | None = None,
        on_delivery: Any = None,
    ) -> None:
        """Queue a record."""
        self._ports.enter()
        if partition is None:
            count = self._ports.cluster.count(topic)
            partition = (murmur2(key) & 0x7FFFFFFF) % count if key is not None else 0
        row = key, value, timestamp, headers
        target = TopicPartition(topic, partition)
        self._queue.append(Unsent(target, row, on_delivery or self._report))
        if not self._is_sending:
            self._is_sending = True
            self._ports.cluster.loop.spawn(self._ports.process, self._send_slowly())

    def poll(self, timeout_s: float) -> int:
        """Call the delivery reports that wait; return their number."""
        self._ports.enter()
        if timeout_s:
            self._ports.threads.wait(timeout_s)
            self._ports.enter()
        reports, self._reports = self._reports, []
        for report in reports:
            report()
        return len(reports)

    def flush(self, timeout_s: float) -> int:
        """Send the queue; return the number of records that are left."""
        deadline = self._ports.cluster.loop.time() + timeout_s
        while True:
            self._ports.request()
            self._send(1 + self._ports.rng.below(50))
            self.poll(0)
            is_late = self._ports.cluster.loop.time() >= deadline
            if not self._queue or is_late or self._fails_with is not None:
                return len(self._queue)

    # -- transactions -----------------------------------------------------------------------------

    def init_transactions(self, timeout_s: float) -> None:
        """Fence the former producer of the id."""
        self._ports.request()
        self._state = self._ports.cluster.initialize(self._id, self._timeout_s)
        self._epoch = self._state.epoch

    def begin_transaction(self) -> None:
        """Begin a transaction; the coordinator notes it with its first record."""
        self._ports.enter()
        self._raise_failure()

    def send_offsets_to_transaction(
        self, listed: Sequence[Any], metadata: bytes, timeout_s: float
    ) -> None:
        """Add offsets to the transaction; KafkaException if the group refuses the member."""
        self._ports.request()
        self._raise_failure()
        assert self._state is not None
        cluster, identity = self._ports.cluster, decode_metadata(metadata)
        group = _group_of(metadata)
        try:
            transaction = cluster.transaction(self._state, self._epoch)
        except Fenced:
            raise self._fenced() from None
        if not cluster.accepts(group, identity):
            error = KafkaError(KafkaError.ILLEGAL_GENERATION, "refused", False, False, True)
            raise KafkaException(error)
        transaction.offsets.setdefault(group, {}).update(
            {
                TopicPartition(row.topic, row.partition): (row.offset, row.metadata or "")
                for row in listed
            }
        )

    def commit_transaction(self, timeout_s: float) -> None:
        """Flush, and commit; returns when the commit is complete."""
        while self.flush(timeout_s):
            self._raise_failure()
        self._raise_failure()
        assert self._state is not None
        self._ports.request()
        if self._ports.rng.below(40) == 0:
            # As after an epoch that the coordinator does not know any more, or a lost record.
            raise KafkaException(KafkaError(KafkaError._INCONSISTENT, "abort", False, False, True))
        transaction = self._state.transaction
        try:
            self._ports.cluster.end(self._state, self._epoch, is_committed=True)
        except Fenced:
            raise self._fenced() from None
        while transaction is not None and self._state.transaction is transaction:
            self._ports.threads.wait(0.001)
            self._ports.enter()

    def abort_transaction(self, timeout_s: float) -> None:
        """Discard the queue and the transaction."""
        self._ports.request()
        self._raise_failure()
        self.purge()
        if self._state is not None:
            try:
                self._ports.cluster.end(self._state, self._epoch, is_committed=False)
            except Fenced:
                raise self._fenced() from None

    def _fenced(self) -> KafkaException:
        self._fails_with = KafkaError(KafkaError._FENCED, "fenced", True)
        return KafkaException(self._fails_with)

    def _raise_failure(self) -> None:
        if self._fails_with is not None:
            raise KafkaException(self._fails_with)

    def purge(self) -> None:
        """Discard the queue."""
        self._ports.enter()
        self._queue.clear()

    def __len__(self) -> int:
        """Return the number of records in the queue."""
        return len(self._queue)

    def close(self) -> None:
        """Close the producer; an open transaction is aborted."""
        self._ports.enter()
        self._is_closed = True
        self._queue.clear()
        if self._state is not None and self._state.epoch == self._epoch:
            transaction = self._state.transaction
            if transaction is not None and not transaction.is_prepared:
                self._ports.cluster.end(self._state, self._epoch, is_committed=False)


def _group_of(metadata: bytes) -> str:
    # The magic has 7 bytes, and the generation 4.
    return metadata[11:].split(b"\0", 1)[0].decode()
