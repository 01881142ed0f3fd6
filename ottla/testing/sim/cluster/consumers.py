"""Consumers of a simulated cluster: read partitions, and commit their position to a group."""

from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.testing.checkers.kafka import OffsetCommit, Polled
from ottla.testing.sim.cluster.clients import (
    GROUP,
    ClusterClient,
    Refused,
    Unavailable,
    check,
)
from ottla.testing.sim.cluster.workers import Work, Worker
from ottla.wire.messages import fetch, list_offsets, offset_commit, offset_fetch
from ottla.wire.records.batch import check_crc
from ottla.wire.records.records import decode_batch, iterate_batches

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
LATEST = -1
_WAIT_MS = 300
_PARTITION_BYTES = 8000
# Longer than the faults of a scenario last.
_STALE_SECONDS = 15.0


class PolledRecords(NamedTuple):
    """Records as (offset, value), and the next position."""

    records: list[tuple[int, str]]
    position: int


async def fetch_records(
    client: ClusterClient, topic: str, partition: int, position: int, isolation_level: int
) -> PolledRecords:
    """Fetch from a position on; raises Unavailable."""
    requested = fetch.FetchPartition(
        partition=partition, fetch_offset=position, partition_max_bytes=_PARTITION_BYTES
    )
    request = fetch.FetchRequest(
        max_wait_ms=_WAIT_MS,
        min_bytes=1,
        max_bytes=10 * _PARTITION_BYTES,
        isolation_level=isolation_level,
        topics=[fetch.FetchTopic(topic=topic, partitions=[requested])],
    )
    response = await client.ask_leader(topic, partition, request, 11, fetch.FetchResponse)
    check(response.error_code)
    data = response.responses[0].partitions[0]
    try:
        check(data.error_code)
    except Unavailable:
        client.forget_leader(topic, partition)
        raise
    aborted: dict[int, list[int]] = {}
    if isolation_level == READ_COMMITTED:
        for entry in data.aborted_transactions or ():
            aborted.setdefault(entry.producer_id, []).append(entry.first_offset)
    records = data.records or b""
    assert not isinstance(records, list)
    return _decode(bytes(records), position, aborted)


def _decode(data: bytes, position: int, aborted: dict[int, list[int]]) -> PolledRecords:
    """Return the records from `position` on, without control batches and aborted records."""
    aborting: set[int] = set()
    records: list[tuple[int, str]] = []
    end = position
    for batch_start, header in iterate_batches(data):
        check_crc(data, batch_start, header)
        end = max(end, header.last_offset + 1)
        starts = aborted.get(header.producer_id, [])
        while starts and min(starts) <= header.base_offset:
            starts.remove(min(starts))
            aborting.add(header.producer_id)
        if header.is_control:
            aborting.discard(header.producer_id)
            continue
        if header.is_transactional and header.producer_id in aborting:
            continue
        for record in decode_batch(data, batch_start, header=header):
            if record.offset >= position:
                records.append((record.offset, (record.value or b"").split()[0].decode()))
    return PolledRecords(records, end)


async def end_offset(
    client: ClusterClient, topic: str, partition: int, isolation_level: int
) -> int:
    """Return the high watermark, or the last stable offset; raises Unavailable."""
    requested = list_offsets.ListOffsetsPartition(partition_index=partition, timestamp=LATEST)
    request = list_offsets.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[list_offsets.ListOffsetsTopic(name=topic, partitions=[requested])],
    )
    response = await client.ask_leader(
        topic, partition, request, 6, list_offsets.ListOffsetsResponse
    )
    result = response.topics[0].partitions[0]
    try:
        check(result.error_code)
    except Unavailable:
        client.forget_leader(topic, partition)
        raise
    return result.offset


async def read_everything(
    client: ClusterClient, topic: str, partition: int, isolation_level: int
) -> list[Polled]:
    """Return all records of a partition; raises Unavailable."""
    end = await end_offset(client, topic, partition, isolation_level)
    position, records = 0, []
    while position < end:
        fetched = await fetch_records(client, topic, partition, position, isolation_level)
        is_committed = isolation_level == READ_COMMITTED
        records += [
            Polled("final", 0, (topic, partition), offset, value, is_committed)
            for offset, value in fetched.records
        ]
        position = fetched.position
    return records


class Consumer(Worker):
    """Reads one partition, commits its position to a group of its own, and resumes from there."""

    def __init__(
        self, work: Work, name: str, topic: str, partition: int, isolation_level: int
    ) -> None:
        super().__init__(work, name)
        self._partition = (topic, partition)
        self._isolation_level = isolation_level
        self._position = 0
        self._session = 0
        self._uncommitted = 0
        self._is_at_end = False
        # The largest offset that was committed, and since when a smaller one is found.
        self._committed = -1
        self._smaller_since: float | None = None

    async def run(self) -> None:
        """Read until it is over and the end is reached."""
        while not self._is_at_end:
            try:
                await self._resume()
                while not self._is_at_end:
                    await self._read()
            except Unavailable as error:
                self.state = str(error)
                await self.client.pause()
            except Refused as error:
                # A leader that lacks committed records: the checker reports them if it stays so.
                self.state = str(error)
                if error.error is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    self.complain(f"{error} when it reads {self._partition} at {self._position}")
                self.client.forget_leader(*self._partition)
                await self.client.pause()
        self.client.close()

    async def _read(self) -> None:
        topic, partition = self._partition
        was_over = self.work.is_over
        fetched = await fetch_records(
            self.client, topic, partition, self._position, self._isolation_level
        )
        is_committed = self._isolation_level == READ_COMMITTED
        self.work.history.polls += [
            Polled(self.name, self._session, self._partition, offset, value, is_committed)
            for offset, value in fetched.records
        ]
        is_ahead = fetched.position > self._position
        self._position = fetched.position
        self._uncommitted += len(fetched.records)
        if self._uncommitted > 10 or (not is_ahead and self._uncommitted):
            await self._commit()
            self._uncommitted = 0
        if is_ahead:
            self.progress += 1
            await self.client.clock.sleep(self.rng.below(200) / 1000)
        elif was_over:
            end = await end_offset(self.client, topic, partition, self._isolation_level)
            self.state = f"at {self._position} of {end}"
            self._is_at_end = self._position >= end

    async def _commit(self) -> None:
        topic, partition = self._partition
        requested = offset_commit.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=self._position, committed_metadata=""
        )
        request = offset_commit.OffsetCommitRequest(
            group_id=self.name,
            topics=[offset_commit.OffsetCommitRequestTopic(name=topic, partitions=[requested])],
        )
        response = await self.client.ask_coordinator(
            GROUP, self.name, request, 8, offset_commit.OffsetCommitResponse
        )
        self._check(response.topics[0].partitions[0].error_code)
        entry = OffsetCommit(self.name, self._partition, self._position, is_fetched=False)
        self.work.history.commits.append(entry)
        self._committed = max(self._committed, self._position)

    def _is_doubted(self, offset: int) -> bool:
        """Return True if an offset is smaller than a committed one, and may not stay so.

        A coordinator that was replaced while it was cut off responds from its memory until it
        learns of its successor; in Kafka, too, nothing fences an OffsetFetch. It refuses commits.
        """
        if offset >= self._committed:
            self._smaller_since = None
            return False
        now = self.client.clock.monotonic()
        if self._smaller_since is None:
            self._smaller_since = now
        return now < self._smaller_since + _STALE_SECONDS

    async def _resume(self) -> None:
        """Continue at the committed offset sometimes, as after a restart."""
        topic, partition = self._partition
        requested = offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])
        request = offset_fetch.OffsetFetchRequest(
            group_id=self.name, topics=[requested], require_stable=True
        )
        response = await self.client.ask_coordinator(
            GROUP, self.name, request, 7, offset_fetch.OffsetFetchResponse
        )
        self._check(response.error_code)
        committed = response.topics[0].partitions[0]
        self._check(committed.error_code)
        offset = committed.committed_offset
        if self._is_doubted(offset):
            self.client.forget_coordinator(GROUP, self.name)
            raise Unavailable(f"offset {offset} of {self._committed}")
        entry = OffsetCommit(self.name, self._partition, offset, is_fetched=True)
        self.work.history.commits.append(entry)
        if self.rng.below(2):
            self._session += 1
            self._position = max(offset, 0)

    def _check(self, code: int) -> None:
        try:
            check(code)
        except Unavailable:
            self.client.forget_coordinator(GROUP, self.name)
            raise
