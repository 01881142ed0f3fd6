"""The time of the first record that a group has not consumed: its lag in seconds, exactly.

The time is read from the log itself, not estimated from offsets. A committed offset that does not
move is read once. If this broker has a replica, it reads that; otherwise it fetches a single batch
from the leader.

The time is known without decompression if the offset is the first one of its batch.

Not done: record formats before version 2 (Kafka 0.11) have no lag in seconds.
"""

from collections.abc import Awaitable, Callable, Collection
from functools import partial

from ottla.base.buffers import Buffer, FileRange
from ottla.base.errors import ApiError, ErrorCode, StorageError
from ottla.base.files import FileSystem
from ottla.cluster.image import NO_LEADER, ClusterImage
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas
from ottla.server.lag.questions import Leaders
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.wire.records.batch import HEADER_SIZE, MAGIC, parse_header
from ottla.wire.records.records import next_record

_VERSION = 12
# One scrape fetches at most this many batches from other brokers; the next one continues.
_REMOTE_MAX = 100
# A larger batch is decompressed off the event loop.
_SMALL_BYTES = 16 * 1024

# Topic, partition, offset.
Position = tuple[str, int, int]
Rest = Callable[[], Awaitable[None]]


def timestamp_at(batch: Buffer, offset: int) -> int | None:
    """Return the timestamp (ms) of the first record of a batch at or after an offset.

    None if the bytes are not a whole batch of version 2. Decompresses the batch if necessary.
    """
    if len(batch) < HEADER_SIZE:
        return None
    header = parse_header(batch)
    if header.magic != MAGIC or header.size_bytes > len(batch):
        return None
    if header.has_log_append_time:
        return header.max_timestamp
    if offset <= header.base_offset:
        return header.base_timestamp
    try:
        record, _ = next_record(batch, offset)
    except ApiError:
        return None
    # Compaction may have removed the record itself.
    return header.max_timestamp if record is None else record.timestamp


class RecordTimes:
    """The timestamps (ms) of records, by position; keeps the timestamps of the latest call."""

    def __init__(self, files: FileSystem, leaders: Leaders) -> None:
        self._files = files
        self._leaders = leaders
        self._known: dict[Position, int] = {}

    async def find(
        self, image: ClusterImage, replicas: Replicas, positions: Collection[Position], rest: Rest
    ) -> dict[Position, int]:
        """Return the time of the first record at or after each position, if it can be read.

        `rest` is awaited between two reads.
        """
        times = {at: self._known[at] for at in positions if at in self._known}
        remote: list[Position] = []
        for position in positions:
            if position in times:
                continue
            topic, number, offset = position
            replica = replicas.find(topic, b"", number)
            if replica is None or replica.is_offline or offset >= replica.high_watermark:
                remote.append(position)
                continue
            await rest()
            timestamp = await self._read(replica, offset)
            if timestamp is not None:
                times[position] = timestamp
        times |= await self._ask(image, replicas.node_id, remote[:_REMOTE_MAX])
        self._known = times
        return times

    async def _read(self, replica: Partition, offset: int) -> int | None:
        offset = max(offset, replica.log.log_start_offset)
        try:
            batch = _first_batch(replica, offset, only_if_cached=True)
            if batch is None:
                await replica.warm(offset, 1)
                batch = _first_batch(replica, offset, only_if_cached=False)
        except (ApiError, StorageError):
            # The log has been truncated, or has failed; it has no value in this scrape.
            return None
        return await self._timestamp(batch or b"", offset)

    async def _timestamp(self, batch: bytes, offset: int) -> int | None:
        if len(batch) <= _SMALL_BYTES:
            return timestamp_at(batch, offset)
        return await self._files.in_background(partial(timestamp_at, batch, offset))

    async def _ask(
        self, image: ClusterImage, node_id: int, positions: Collection[Position]
    ) -> dict[Position, int]:
        requested: list[Position] = []
        questions: list[tuple[int, FetchRequest]] = []
        for position in positions:
            state = image.partition(position[0], position[1])
            if state is not None and state.leader not in (NO_LEADER, node_id):
                requested.append(position)
                questions.append((state.leader, _request(position)))
        responses = await self._leaders.ask(questions, _VERSION, FetchResponse)
        times: dict[Position, int] = {}
        for position, response in zip(requested, responses, strict=True):
            batch = b"" if response is None else _batch(response)
            timestamp = await self._timestamp(batch, position[2])
            if timestamp is not None:
                times[position] = timestamp
        return times


def _first_batch(replica: Partition, offset: int, *, only_if_cached: bool) -> bytes | None:
    """Return the batch that contains an offset; None only if `only_if_cached` and it is cold."""
    fetched = replica.log.read(
        offset,
        1,
        max_offset=replica.high_watermark,
        at_least_one=True,
        only_if_cached=only_if_cached,
    )
    if fetched is None:
        return None
    records = fetched.records
    return records.read() if isinstance(records, FileRange) else bytes(records)


def _request(position: Position) -> FetchRequest:
    topic, number, offset = position
    # The first batch is returned however large it is (KIP-74).
    requested = FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1)
    return FetchRequest(max_bytes=1, topics=[FetchTopic(topic=topic, partitions=[requested])])


def _batch(response: FetchResponse) -> bytes:
    for topic in response.responses:
        for partition in topic.partitions:
            if partition.error_code == ErrorCode.NONE and partition.records:
                assert not isinstance(partition.records, list), "a received response has one buffer"
                return bytes(partition.records)
    return b""
