"""One pass over the partitions of a fetch: reads the data of each, within the limits.

Nothing here blocks: a read that would block is recorded as cold. Follows ReplicaManager.readFromLog
(KIP-74: the first partition that has data returns at least one batch, however large it is).
"""

from typing import NamedTuple, Protocol, cast

from ottla.base.buffers import Buffer, FileRange, Part
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.options import Snapshot
from ottla.cluster.image import ClusterImage
from ottla.net.connection import Connection
from ottla.replication.partition import READ_COMMITTED, Partition
from ottla.replication.replicas import Replicas
from ottla.server.fetch.sessions import Ended, FetchPlan, FetchSessions, PartitionFetch
from ottla.server.quotas.clients import RequestUsage
from ottla.storage.log.log import Log
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    FetchRequest,
    LeaderIdAndEpoch,
    PartitionData,
)
from ottla.wire.records import batch

# The largest response (but always at least one whole batch), so that no consumer makes the broker
# read for long; a client that requests more sends another fetch.
RESPONSE_BYTES_MAX = 8 * 1024 * 1024
# A larger min_bytes is reduced to this: the next batch may not fit into the response any more.
ENOUGH_BYTES = RESPONSE_BYTES_MAX // 2
# With more aborted transactions than this, only those that concern the returned records are listed.
_ABORTED_UNSORTED_MAX = 16
# Consumers with older versions know leaders only (KIP-392).
_FIRST_VERSION_OF_FOLLOWERS = 11
_FIRST_VERSION_WITH_LEADER = 12
_FIRST_VERSION_WITH_TOPIC_IDS = 13
_UNKNOWN = -1
_UNKNOWN_PARTITION = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class FetchBroker(Protocol):
    """The parts of a broker that fetches need."""

    options: Snapshot
    image: ClusterImage
    replicas: Replicas
    fetch_sessions: FetchSessions


class FetchContext(Protocol):
    """The parts of a request's context that one pass over its partitions needs."""

    @property
    def broker(self) -> FetchBroker:
        """The broker that serves the request."""
        ...

    @property
    def connection(self) -> Connection:
        """The connection that the response is sent on."""
        ...

    @property
    def api_version(self) -> int:
        """The version of the request."""
        ...

    @property
    def usage(self) -> RequestUsage | None:
        """The quotas of the client; None if it has none."""
        ...


class Cold(NamedTuple):
    """A read that has to wait for the disk."""

    partition: Partition
    offset: int
    max_bytes: int


class FetchPass:
    """The result of one pass over the partitions of a fetch."""

    __slots__ = (
        "answers",
        "cold",
        "ended",
        "has_error",
        "only_if_cached",
        "partitions",
        "range_bytes_min",
        "size_bytes",
    )

    def __init__(self, range_bytes_min: int, *, only_if_cached: bool) -> None:
        self.range_bytes_min = range_bytes_min
        self.only_if_cached = only_if_cached
        self.answers: list[tuple[PartitionFetch, PartitionData]] = []
        # The partitions whose answers are not errors.
        self.partitions: dict[PartitionFetch, Partition] = {}
        # The partitions that have nothing for the client until they change.
        self.ended: list[Ended] = []
        self.cold: list[Cold] = []
        self.size_bytes = 0
        self.has_error = False

    def take_back(self) -> None:
        """Undo the byte counts of this pass: its records are not sent to the client."""
        for fetch, answer in self.answers:
            if answer.records:
                self.partitions[fetch].fetched_bytes -= len(answer.records)


def read(
    context: FetchContext,
    request: FetchRequest,
    plan: FetchPlan,
    *,
    only_if_cached: bool = True,
    known: "dict[PartitionFetch, Ended] | None" = None,
) -> FetchPass:
    """Read every partition of the plan in its order; those in `known` have not changed since."""
    broker = context.broker
    replicas = broker.replicas
    has_topic_ids = context.api_version >= _FIRST_VERSION_WITH_TOPIC_IDS
    or_follower = context.api_version >= _FIRST_VERSION_OF_FOLLOWERS
    is_committed = request.isolation_level == READ_COMMITTED
    left = min(
        request.max_bytes,
        broker.options["fetch.max.bytes"],
        RESPONSE_BYTES_MAX,
        context.connection.answer_room_bytes,
    )
    if context.usage is not None:
        # A larger response would certainly be throttled, so its records would never be sent.
        left = int(min(left, context.usage.fetch_bytes_max))
    range_bytes_min = context.connection.range_bytes_min
    reading = FetchPass(range_bytes_min, only_if_cached=only_if_cached)
    for fetch in plan.partitions:
        if known is not None and fetch in known:
            ended = known[fetch]
            reading.ended.append(ended)
            reading.answers.append((fetch, ended[1]))
            continue
        try:
            if has_topic_ids:
                partition = replicas.get_by_id(fetch.topic_id, fetch.partition)
            else:
                partition = replicas.get(fetch.topic, fetch.partition)
            partition.check_leader(fetch.leader_epoch, or_follower=or_follower)
            answer = _read_partition(reading, partition, fetch, request, left)
        except ApiError as error:
            reading.has_error = True
            answer = failure(context, fetch, error)
        if is_committed and answer.aborted_transactions is None:
            answer.aborted_transactions = []
        if answer.records:
            size_bytes = len(answer.records)
            reading.size_bytes += size_bytes
            left -= size_bytes
        reading.answers.append((fetch, answer))
    return reading


def _read_partition(
    reading: FetchPass,
    partition: Partition,
    fetch: PartitionFetch,
    request: FetchRequest,
    left: int,
) -> PartitionData:
    partition.fetches_count += 1
    log = partition.log
    high_watermark = partition.high_watermark
    stable_offset = log.last_stable_offset(high_watermark)
    end_offset = stable_offset if request.isolation_level == READ_COMMITTED else high_watermark
    offset = fetch.offset
    max_bytes = min(fetch.max_bytes, left)
    records: Part = b""
    aborted: list[AbortedTransaction] | None = None
    is_first = reading.size_bytes == 0
    is_inside = log.log_start_offset <= offset <= log.log_end_offset
    if not is_inside or (offset < end_offset and (is_first or max_bytes > 0)):
        fetched = partition.read(
            offset,
            max_bytes,
            end_offset,
            at_least_one=is_first,
            only_if_cached=reading.only_if_cached,
            range_bytes_min=reading.range_bytes_min,
        )
        if fetched is None:
            reading.cold.append(Cold(partition, offset, max_bytes))
        else:
            records = fetched.records
            if records:
                partition.fetched_bytes += len(records)
            if request.isolation_level == READ_COMMITTED and records:
                aborted = _aborted(log, offset, end_offset, records)
    reading.partitions[fetch] = partition
    answer = PartitionData(
        partition_index=fetch.partition,
        high_watermark=high_watermark,
        last_stable_offset=stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=aborted,
        # The encoder passes on any object that has a length; clients never see a range.
        records=cast(Buffer, records),
    )
    if is_inside and offset >= end_offset:
        reading.ended.append((fetch, answer, partition))
    return answer


def _aborted(log: Log, offset: int, end_offset: int, records: Part) -> list[AbortedTransaction]:
    """Return the aborted transactions that the records may belong to: clients skip them (KIP-98)."""
    found = log.aborted_transactions(offset, end_offset)
    if len(found) > _ABORTED_UNSORTED_MAX:
        data = records.read() if isinstance(records, FileRange) else records
        end_offset = batch.end_offset(data)
        found = [item for item in found if item.first_offset < end_offset]
    return [
        AbortedTransaction(producer_id=item.producer_id, first_offset=item.first_offset)
        for item in found
    ]


def failure(context: FetchContext, fetch: PartitionFetch, error: ApiError) -> PartitionData:
    """Return the answer for a partition that cannot be read."""
    answer = PartitionData(
        partition_index=fetch.partition,
        error_code=int(error.code),
        high_watermark=_UNKNOWN,
        # Kafka returns null once it has looked into a log.
        aborted_transactions=[] if error.code in _UNKNOWN_PARTITION else None,
        records=b"",
    )
    is_elsewhere = error.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
    if is_elsewhere and context.api_version >= _FIRST_VERSION_WITH_LEADER:
        answer.current_leader = _leader(context.broker, fetch)
    return answer


def _leader(broker: FetchBroker, fetch: PartitionFetch) -> LeaderIdAndEpoch | None:
    """Return the partition's leader according to the cluster image (KIP-951)."""
    name = fetch.topic or broker.image.topic_names.get(fetch.topic_id, "")
    found = broker.image.partition(name, fetch.partition)
    if found is None:
        return None
    return LeaderIdAndEpoch(leader_id=found.leader, leader_epoch=found.leader_epoch)
