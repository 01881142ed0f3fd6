"""One search on this broker: the partitions that it leads, chunk by chunk, as a stream of rows.

The event loop only looks up positions. Reading, decoding and filtering run in a thread in steps of
at most STEP_SECONDS, because the thread takes the interpreter from the loop. While clients use the
broker, the search rests after each step.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from functools import partial

from ottla.base.errors import ApiError, ErrorCode, StorageError
from ottla.base.files import FileSystem
from ottla.base.search.matching import Matcher
from ottla.cluster.image import NO_LEADER
from ottla.replication import leading
from ottla.replication.partition import READ_COMMITTED, READ_UNCOMMITTED, Partition
from ottla.server.context import Broker
from ottla.server.search import rows
from ottla.server.search.chunks import as_api_error, read_chunk
from ottla.server.search.request import Anchor, Position, SearchRequest
from ottla.server.search.scan import Aborted, PartitionScan, Step, Totals
from ottla.storage.log.log import Log

# The longest step of a scan.
STEP_SECONDS = 0.002
CHUNK_BYTES = 256 * 1024
PROGRESS_SECONDS = 1.0
# A share of the loop's thread above this means that clients use the broker.
_BUSY_SHARE = 0.25
# The rest after a step, as a multiple of the step, while clients use the broker.
_REST = 3.0


class Search:
    """A search that has been accepted; `stream` runs it."""

    def __init__(self, broker: Broker, files: FileSystem, request: SearchRequest) -> None:
        """Prepare; raises ConfigError or ApiError if a parameter is wrong or the topic is unknown."""
        self._broker = broker
        self._files = files
        self._request = request
        self._totals = Totals()
        self._matcher = Matcher(request.filters.conditions())
        topic = broker.image.topics.get(request.topic)
        if topic is None:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {request.topic!r}."
            )
        numbers = range(len(topic.partitions))
        unknown = sorted(set(request.partitions) - set(numbers))
        if unknown:
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"Topic {request.topic!r} has no partition {unknown[0]}, only 0 to {numbers[-1]}.",
            )
        self._elsewhere: list[dict[str, int]] = []
        self._scans: list[PartitionScan] = []
        self._problems: list[bytes] = []
        for number in sorted(set(request.partitions) or numbers):
            leader = topic.partitions[number].leader
            try:
                self._scans.append(self._partition_scan(number))
            except ApiError as error:
                if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                    self._problems.append(self._problem(number, 0, error))
                else:
                    other = NO_LEADER if leader == broker.node_id else leader
                    self._elsewhere.append({"partition": number, "leader": other})

    def _partition_scan(self, number: int) -> PartitionScan:
        request = self._request
        partition = self._leading(number)
        isolation = READ_COMMITTED if request.read_committed else READ_UNCOMMITTED
        try:
            limits = partition.log.log_start_offset, leading.readable_end(partition, isolation)
            start = _offset(partition.log, request.start, *limits)
            # A time is no end: older records may follow the first one at that time.
            is_timed = request.end.anchor is Anchor.TIME
            end = limits[1] if is_timed else _offset(partition.log, request.end, *limits)
        except StorageError as error:
            raise as_api_error(error) from error
        return PartitionScan(
            topic=request.topic,
            partition=number,
            next_offset=start,
            end_offset=max(start, end),
            readable_end=limits[1],
            matcher=self._matcher,
            from_ms=request.start.value if request.start.anchor is Anchor.TIME else -1,
            until_ms=request.end.value if request.end.anchor is Anchor.TIME else None,
            limit=request.limit,
            value_limit=request.value_limit,
            totals=self._totals,
        )

    def _leading(self, number: int) -> Partition:
        partition = self._broker.replicas.get(self._request.topic, number)
        partition.check_leader()
        return partition

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the rows, each a line, until everything is read or the limit is reached."""
        clock = self._broker.clock
        started = reported = clock.monotonic()
        yield self._start_row()
        for row in self._problems:
            yield row
        for scan in self._scans:
            async with aclosing(self._scan(scan)) as lines:
                async for row in lines:
                    if row:
                        yield row
                    now = clock.monotonic()
                    if now - reported >= PROGRESS_SECONDS:
                        reported = now
                        yield self._progress(scan, now - started)
            if scan.has_enough:
                break
        has_enough = any(scan.has_enough for scan in self._scans)
        yield rows.line(
            "end",
            reason="limit" if has_enough else "complete",
            **self._counts(),
            partitions=[
                {"partition": scan.partition, "next_offset": scan.next_offset}
                for scan in self._scans
            ],
            seconds=round(clock.monotonic() - started, 3),
        )

    async def _scan(self, scan: PartitionScan) -> AsyncGenerator[bytes, None]:
        """Yield the rows of one partition, and empty bytes after steps without any."""
        while scan.next_offset < scan.end_offset and not scan.has_enough:
            before = scan.next_offset
            try:
                partition = self._leading(scan.partition)
                # Records that were deleted since the last step are gone.
                scan.next_offset = max(scan.next_offset, partition.log.log_start_offset)
                data = await read_chunk(
                    partition, scan.next_offset, scan.readable_end, max_bytes=CHUNK_BYTES
                )
                aborted = self._aborted(partition, scan)
            except (ApiError, StorageError) as error:
                yield self._problem(scan.partition, scan.next_offset, as_api_error(error))
                return
            step = Step(scan, data, aborted, self._broker.clock.monotonic)
            while not step.is_done:
                yield b"".join(await self._run(step))
            if scan.next_offset <= before and not scan.has_enough:
                # The rest of the range has no records: compaction removed them.
                scan.next_offset = scan.end_offset

    def _aborted(self, partition: Partition, scan: PartitionScan) -> Aborted:
        if not self._request.read_committed:
            return ()
        aborted = partition.log.aborted_transactions(scan.next_offset, scan.end_offset)
        return [
            (transaction.producer_id, transaction.first_offset, transaction.last_offset)
            for transaction in aborted
        ]

    async def _run(self, step: Step) -> list[bytes]:
        clock = self._broker.clock
        started, cpu = clock.monotonic(), clock.cpu_seconds()
        lines = await self._files.in_background(partial(step.run, STEP_SECONDS))
        seconds = clock.monotonic() - started
        is_busy = clock.cpu_seconds() - cpu > _BUSY_SHARE * seconds
        await clock.sleep(_REST * seconds if is_busy else 0)
        return lines

    def _start_row(self) -> bytes:
        ranges: Iterator[dict[str, int]] = (
            {"partition": scan.partition, "from": scan.next_offset, "to": scan.end_offset}
            for scan in self._scans
        )
        return rows.line(
            "start",
            topic=self._request.topic,
            broker=self._broker.node_id,
            partitions=list(ranges),
            elsewhere=self._elsewhere,
        )

    def _progress(self, scan: PartitionScan, seconds: float) -> bytes:
        return rows.line(
            "progress",
            **self._counts(),
            partition=scan.partition,
            next_offset=scan.next_offset,
            remaining=sum(scan.end_offset - scan.next_offset for scan in self._scans),
            seconds=round(seconds, 3),
        )

    def _counts(self) -> dict[str, int]:
        totals = self._totals
        return {
            "records": totals.records,
            "bytes": totals.bytes,
            "skipped_bytes": totals.skipped_bytes,
            "matches": totals.matches,
        }

    def _problem(self, number: int, offset: int, error: ApiError) -> bytes:
        return rows.line(
            "problem",
            partition=number,
            offset=offset,
            error=error.code.name,
            message=str(error),
        )


def _offset(log: Log, position: Position, start: int, end: int) -> int:
    """Return the offset of a position between the ends of what may be read."""
    match position.anchor:
        case Anchor.BEGINNING:
            return start
        case Anchor.END:
            return end
        case Anchor.OFFSET:
            offset = position.value
        case Anchor.TAIL:
            offset = end - position.value
        case Anchor.TIME:
            later = log.offset_for_timestamp(position.value)
            offset = end if later is None else later.offset
    return min(max(offset, start), end)
