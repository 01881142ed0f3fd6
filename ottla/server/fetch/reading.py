"""One pass over the partitions of a fetch: reads the data of each, within the limits.

The pass is the same for consumers and followers. This module also decides what a consumer may read
of a partition; `followers` decides it for followers. Nothing here blocks: a read that would block
is recorded as cold. Follows ReplicaManager.readFromLog (KIP-74: the first partition that has data
returns at least one batch, however large it is).
"""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.base.buffers import Part
from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.slices import Lane
from ottla.cluster.image import BrokerImage
from ottla.cluster.options.broker_options import RACK_AWARE_SELECTOR
from ottla.net.connection import Connection
from ottla.replication import leading
from ottla.replication.fetched import (
    READ_COMMITTED,
    RESPONSE_BYTES_MAX,
    Fetched,
)
from ottla.replication.partition import Partition
from ottla.replication.replicas import Replicas
from ottla.server.current import Current
from ottla.server.fetch.sessions import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    Ended,
    FetchSessions,
    PartitionFetch,
)
from ottla.server.quotas.clients import RequestUsage
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    FetchRequest,
    LeaderIdAndEpoch,
    PartitionData,
)
from ottla.wire.schema import first_version

if TYPE_CHECKING:
    from ottla.server.authorization.access import Access

# Consumers with older versions know leaders only (KIP-392).
FIRST_VERSION_OF_FOLLOWERS = first_version(PartitionData, "preferred_read_replica")
_FIRST_VERSION_WITH_LEADER = first_version(PartitionData, "current_leader")
_UNKNOWN = -1
# The errors of partitions into whose log the broker does not look.
_UNSEEN = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)


class FetchBroker(Protocol):
    """The parts of a broker that fetches need."""

    @property
    def clock(self) -> Clock:
        """The monotonic clock of the broker's loop."""
        ...

    @property
    def current(self) -> Current:
        """The options and the image as of now."""
        ...

    @property
    def replicas(self) -> Replicas:
        """The partitions of the broker."""
        ...

    @property
    def lane(self) -> Lane:
        """The lane of large work."""
        ...

    @property
    def fetch_sessions(self) -> FetchSessions:
        """The sessions of consumers."""
        ...


class FetchContext(Protocol):
    """The parts of a request's context that a fetch needs."""

    # True if the response has errors.
    has_errors: bool

    @property
    def access(self) -> "Access | None":
        """The rights of the sender; None without an authorizer."""
        ...

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
        """The quotas of the client; None without a quota."""
        ...

    def address_of(self, broker: BrokerImage) -> tuple[str, int] | None:
        """Return the address at which the client reaches a broker."""
        ...


class DiskRead(NamedTuple):
    """A read that has to wait for the disk."""

    partition: Partition
    offset: int
    max_bytes: int


class FetchPass:
    """The result of one pass over the partitions of a fetch."""

    __slots__ = (
        "cold",
        "ended",
        "has_error",
        "must_act",
        "partitions",
        "read",
        "results",
        "size_bytes",
    )

    def __init__(self) -> None:
        self.results: list[tuple[PartitionFetch, PartitionData]] = []
        # The partitions whose results are not errors.
        self.partitions: dict[PartitionFetch, Partition] = {}
        # The partitions that have nothing for the client until they change.
        self.ended: list[Ended] = []
        self.cold: list[DiskRead] = []
        self.size_bytes = 0
        self.has_error = False
        # The results that have records.
        self.read: list[tuple[Partition, Fetched]] = []
        # True if the client has to read a partition elsewhere, or to truncate its log.
        self.must_act = False

    @property
    def is_urgent(self) -> bool:
        """True if the client has to act, although there may be no records."""
        return self.has_error or self.must_act

    def take_back(self) -> None:
        """Undo the byte counts of this pass: its records are not sent to the client."""
        for partition, fetched in self.read:
            partition.take_back(fetched)

    async def warm(self) -> None:
        """Read the cold bytes into the page cache."""
        for partition, offset, max_bytes in self.cold:
            await partition.warm(offset, max_bytes)


# The result for one partition: the partition, or None if the client reads it elsewhere; its part of
# the response; its records, or None if they are cold; True if it has no records until it changes.
PartitionRead = tuple[Partition | None, PartitionData, Part | None, bool]
# Reads at most so many bytes of a partition, or at least one batch; raises ApiError.
ReadOne = Callable[[PartitionFetch, int, bool], PartitionRead]


def read_each(
    context: FetchContext,
    partitions: Iterable[PartitionFetch],
    read_one: ReadOne,
    remaining_bytes: int,
    reading: FetchPass,
    known: "dict[PartitionFetch, Ended] | None" = None,
) -> FetchPass:
    """Read partitions in their order into `reading`; those in `known` have not changed."""
    results, size_bytes = reading.results, reading.size_bytes
    for fetch in partitions:
        if known is not None and fetch in known:
            ended = known[fetch]
            reading.ended.append(ended)
            results.append((fetch, ended[1]))
            continue
        max_bytes = fetch.max_bytes
        if max_bytes > remaining_bytes:
            max_bytes = remaining_bytes
        try:
            partition, result, records, is_at_end = read_one(fetch, max_bytes, not size_bytes)
        except ApiError as error:
            reading.has_error = True
            results.append((fetch, failure(context, fetch, error)))
            continue
        results.append((fetch, result))
        if partition is None:
            continue
        reading.partitions[fetch] = partition
        if records:
            remaining_bytes -= len(records)
            size_bytes += len(records)
        elif records is None:
            reading.cold.append(DiskRead(partition, fetch.offset, max_bytes))
        elif is_at_end:
            reading.ended.append((fetch, result, partition))
    reading.size_bytes = size_bytes
    return reading


def read(
    context: FetchContext,
    request: FetchRequest,
    partitions: Collection[PartitionFetch],
    *,
    only_if_cached: bool = True,
    known: "dict[PartitionFetch, Ended] | None" = None,
    reading: FetchPass | None = None,
) -> FetchPass:
    """Read partitions for a consumer, as a part of `reading`; those in `known` have not changed."""
    broker = context.broker
    remaining_bytes = bytes_max(broker, context.connection, request.max_bytes)
    if context.usage is not None:
        # A larger response would certainly be throttled, so its records would never be sent.
        remaining_bytes = int(min(remaining_bytes, context.usage.fetch_bytes_max))
    reading = reading or FetchPass()
    remaining_bytes -= reading.size_bytes
    read_one = _consumer_read(context, request, reading, only_if_cached=only_if_cached)
    read_each(context, partitions, read_one, remaining_bytes, reading, known)
    if reading.has_error and request.isolation_level == READ_COMMITTED:
        for _, result in reading.results:
            if result.aborted_transactions is None:
                result.aborted_transactions = []
    return reading


def _consumer_read(
    context: FetchContext, request: FetchRequest, reading: FetchPass, *, only_if_cached: bool
) -> ReadOne:
    """Return the function that reads a partition for a consumer, and counts what it has read."""
    has_topic_ids = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    replicas = context.broker.replicas
    get: Callable[[Any, int], Partition] = replicas.get_by_id if has_topic_ids else replicas.get
    if context.access is not None:
        get = context.access.readable(get)
    or_follower = context.api_version >= FIRST_VERSION_OF_FOLLOWERS
    isolation_level = request.isolation_level
    options = (isolation_level, context.connection.range_bytes_min, only_if_cached, or_follower)
    is_rack_aware = or_follower and selects_by_rack(context.broker, request)
    add = reading.read.append

    def read_one(fetch: PartitionFetch, max_bytes: int, at_least_one: bool) -> PartitionRead:
        partition = get(fetch.topic_id if has_topic_ids else fetch.topic, fetch.partition)
        if is_rack_aware:
            preferred = _preferred_replica(context, partition, fetch, request.rack_id)
            if preferred is not None:
                reading.must_act = True
                return None, preferred, b"", False
        fetched = partition.fetch(
            fetch.offset, max_bytes, fetch.leader_epoch, options, at_least_one=at_least_one
        )
        records = fetched.records
        if records:
            add((partition, fetched))
        result = partition_data_of(fetch.partition, isolation_level, fetched)
        return partition, result, records, fetched.is_at_end

    return read_one


def _count_failure(replicas: Replicas, fetch: PartitionFetch) -> None:
    # Clients choose the names of topics that do not exist.
    partition = replicas.find(fetch.topic, fetch.topic_id, fetch.partition)
    if partition is not None:
        replicas.failed_fetches[partition.topic] += 1


def selects_by_rack(broker: FetchBroker, request: FetchRequest) -> bool:
    """Return True if a consumer may be directed to the replica of its rack (KIP-392)."""
    if not request.rack_id:
        return False
    selector: str | None = broker.current.options["replica.selector.class"]
    return selector == RACK_AWARE_SELECTOR


def _preferred_replica(
    context: FetchContext, partition: Partition, fetch: PartitionFetch, rack: str
) -> PartitionData | None:
    """Return a result without records that names a follower; None if the consumer reads here."""
    partition.check_leader(fetch.leader_epoch, or_follower=True)
    if partition.isr is None:
        return None
    brokers = context.broker.current.image.brokers

    def rack_of(replica: int) -> str | None:
        known = brokers.get(replica)
        return None if known is None or context.address_of(known) is None else known.rack

    preferred = leading.preferred_read_replica(partition.isr, fetch.offset, rack, rack_of)
    if preferred == leading.NO_PREFERENCE:
        return None
    high_watermark = partition.high_watermark
    return PartitionData(
        partition_index=fetch.partition,
        high_watermark=high_watermark,
        last_stable_offset=partition.log.last_stable_offset(high_watermark),
        log_start_offset=partition.log.log_start_offset,
        preferred_read_replica=preferred,
        records=b"",
    )


def bytes_max(broker: FetchBroker, connection: Connection, wanted_bytes: int) -> int:
    """Return how many bytes of records a response on a connection may contain.

    It is the smallest of the client's limit, fetch.max.bytes, the largest response of this broker,
    and the bytes in memory that may wait to be sent.
    """
    # Comparisons take a third of the time of `min`, and this is done for every fetch.
    allowed: int = broker.current.options["fetch.max.bytes"]
    if allowed > RESPONSE_BYTES_MAX:
        allowed = RESPONSE_BYTES_MAX
    room_bytes = connection.answer_room_bytes
    if allowed > room_bytes:
        allowed = room_bytes
    return wanted_bytes if wanted_bytes < allowed else allowed


def partition_data_of(partition: int, isolation_level: int, fetched: Fetched) -> PartitionData:
    """Return the part of the response for one partition."""
    records, high_watermark, stable_offset, log_start_offset, aborted, _ = fetched
    partition_data = PartitionData(
        partition_index=partition,
        high_watermark=high_watermark,
        last_stable_offset=stable_offset,
        log_start_offset=log_start_offset,
        aborted_transactions=None,
        # The encoder passes on any object that has a length; clients never see a range.
        records=records or b"",  # type: ignore[arg-type]
    )
    if isolation_level == READ_COMMITTED:
        partition_data.aborted_transactions = [
            AbortedTransaction(producer_id=item.producer_id, first_offset=item.first_offset)
            for item in aborted
        ]
    return partition_data


def failure(context: FetchContext, fetch: PartitionFetch, error: ApiError) -> PartitionData:
    """Return the part of the response for a partition that cannot be read; count the failure."""
    _count_failure(context.broker.replicas, fetch)
    partition_data = PartitionData(
        partition_index=fetch.partition,
        error_code=int(error.code),
        high_watermark=_UNKNOWN,
        # Kafka returns null once it has looked into a log.
        aborted_transactions=[] if error.code in _UNSEEN else None,
        records=b"",
    )
    is_elsewhere = error.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
    if is_elsewhere and context.api_version >= _FIRST_VERSION_WITH_LEADER:
        partition_data.current_leader = _leader(context.broker, fetch)
    return partition_data


def _leader(broker: FetchBroker, fetch: PartitionFetch) -> LeaderIdAndEpoch | None:
    """Return the partition's leader according to the cluster image (KIP-951)."""
    name = fetch.topic or broker.current.image.topic_names.get(fetch.topic_id, "")
    partition = broker.current.image.partition(name, fetch.partition)
    if partition is None:
        return None
    return LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
