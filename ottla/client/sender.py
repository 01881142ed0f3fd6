"""Writes columns of records without duplicates: the bulk writer of the Spark sink.

An idempotent producer (KIP-98) for one thread: rows become batches by column, several batches are
in flight, and all in-sync replicas acknowledge each batch. When a leader moves or a connection
breaks, unacknowledged batches are sent again in order with the same sequence numbers, so that the
broker drops duplicates. In a transaction, read_committed consumers do not see the rows until its
owner commits it.

A permanent error is raised. If the caller passes `on_refused`, a rejected batch is halved until the
rejected records are found, and the callback decides whether the sender skips them.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.bootstrap import Address
from ottla.client.brokers import Brokers
from ottla.client.errors import NotReachable, TimedOut
from ottla.client.pipelined import PipelinedConnection
from ottla.client.transaction import Transaction
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.columnar_encoding import EncodedBatch, Rows, Sender, encode_rows

# Later versions name topics by id.
_PRODUCE_VERSION_MAX = 12
# From version 12 on, every transaction ends with a new epoch (KIP-890), which another process could
# not end.
_TRANSACTIONAL_VERSION_MAX = 11
_ALL_IN_SYNC = -1
# A broker remembers the last five batches of a producer; it could not recognize duplicates of older
# ones.
_IN_FLIGHT_MAX = 5
# Batches in memory, over all partitions.
_WAITING_MAX = 12
_PAUSE_S = 0.05
_PAUSE_S_MAX = 1.0
_WRITTEN = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})

# Errors of a topic, whatever is written to it.
TOPIC_REFUSALS = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        # The error of a topic that does not exist; retried for a while, since the broker may be
        # creating it.
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
# Permanent errors of records.
_RECORD_REFUSALS = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)

Refused = Callable[[str, Rows, ApiError], None]
"""Told a topic and rows that it does not take; returns to go on without them, or raises."""


@dataclass(frozen=True)
class SendSettings:
    """The settings of a sender.

    `batch_bytes` is before compression; `timeout_s` is the longest time for one batch.
    """

    batch_bytes: int = 900_000
    compression: int = 0
    timeout_s: float = 120.0


@dataclass
class _Lane:
    """The unacknowledged batches of one partition, in order; the first `in_flight` have been sent."""

    topic: str
    partition: int
    sender: Sender
    waiting: deque[EncodedBatch] = field(default_factory=deque)
    in_flight: int = 0
    # A batch in flight has failed: wait for the others, then send all of them again.
    has_failed: bool = False
    leader: Address | None = None
    # When to retry after a failure, and until when; monotonic seconds.
    retry_at: float = 0.0
    pause_s: float = _PAUSE_S
    deadline: float | None = None
    # The rows of `waiting`, and the error of its first batch; only with `on_refused`.
    rows: deque[Rows] = field(default_factory=deque)
    refusal: ApiError | None = None
    # Incremented when sequence numbers change because rows were left out.
    renumbered: int = 0
    in_flight_max: int = _IN_FLIGHT_MAX

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def can_send(self) -> bool:
        """True if a batch may be sent now."""
        return not self.has_failed and self.in_flight < min(len(self.waiting), self.in_flight_max)

    def succeed(self) -> EncodedBatch:
        """Remove the first batch: it is acknowledged."""
        self.pause_s, self.deadline, self.in_flight_max = _PAUSE_S, None, _IN_FLIGHT_MAX
        if self.rows:
            self.rows.popleft()
        return self.waiting.popleft()

    def postpone(self, timeout_s: float) -> bool:
        """Schedule all batches to be sent again after a pause; return False if the timeout is over."""
        now = time.monotonic()
        self.has_failed = True
        self.retry_at = now + self.pause_s
        self.pause_s = min(self.pause_s * 2, _PAUSE_S_MAX)
        self.deadline = self.deadline or now + timeout_s
        return now < self.deadline

    def restart(self) -> None:
        """Start again with the first unacknowledged batch, at the current leader."""
        assert self.in_flight == 0
        self.has_failed, self.leader = False, None


class ColumnSender:
    """Sends rows to partitions; a context manager that closes its connections.

    Accepted rows are written for certain only once `flush` has returned. Any error is final and
    says nothing about unacknowledged batches. With a `transaction` all rows are part of it; the
    caller begins and ends it. `on_refused` decides about rows that brokers reject.
    """

    def __init__(
        self,
        brokers: Brokers,
        settings: SendSettings | None = None,
        transaction: Transaction | None = None,
        on_refused: Refused | None = None,
    ) -> None:
        self._brokers = brokers
        self._on_refused = on_refused
        self._transaction = transaction
        self._added: dict[str, set[int]] = defaultdict(set)
        self._settings = settings or SendSettings()
        self._connections: dict[Address, PipelinedConnection] = {}
        self._awaited: dict[PipelinedConnection, deque[_Lane]] = {}
        self._lanes: dict[tuple[str, int], _Lane] = {}
        # Leaders of partitions that have not been written to yet.
        self._leaders: dict[tuple[str, int], int] = {}
        self._identity: Sender | None = None
        self.records_sent = 0

    def __enter__(self) -> "ColumnSender":
        """Return itself; the producer id is requested on first use."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections; unacknowledged rows may or may not be written."""
        for connection in self._connections.values():
            connection.close()

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic; the broker may create the topic."""

        def attempt() -> int:
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True
            )
            (topic_metadata,) = self._brokers.ask(request, MetadataResponse).topics
            if topic_metadata.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                # The topic is being created: the next response has its partitions.
                raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"There is no topic {topic!r}.")
            if topic_metadata.error_code:
                code = ErrorCode(topic_metadata.error_code)
                raise ApiError(code, f"Topic {topic!r}: {code.message}")
            return len(topic_metadata.partitions)

        return self._brokers.retry(attempt)

    def add(self, topic: str, partitions: Iterable[int]) -> None:
        """Add partitions to the transaction, if there is one; `send` adds them one by one."""
        new = sorted(set(partitions) - self._added[topic])
        if self._transaction is not None and new:
            self._transaction.add(self._brokers, topic, new)
            self._added[topic].update(new)

    def send(self, topic: str, partition: int, rows: Rows) -> None:
        """Encode rows for one partition and send them; blocks while too many batches are in flight."""
        lane = self._lane(topic, partition)
        start, count = 0, len(rows.values)
        while start < count:
            numbering = lane.renumbered
            for encoded in self._encode(lane, rows.slice(start, count) if start else rows):
                end = start + encoded.records_count
                self._append(lane, encoded, rows.slice(start, end))
                start = end
                self._let_go(lane)
                while sum(len(lane.waiting) for lane in self._lanes.values()) > _WAITING_MAX:
                    self._advance()
                if lane.renumbered != numbering:
                    break

    def _encode(self, lane: _Lane, rows: Rows) -> Iterable[EncodedBatch]:
        return encode_rows(
            rows,
            batch_bytes=self._settings.batch_bytes,
            compression=self._settings.compression,
            sender=lane.sender,
            transactional=self._transaction is not None,
        )

    def _append(self, lane: _Lane, encoded: EncodedBatch, rows: Rows) -> None:
        lane.sender = lane.sender.after(encoded.records_count)
        lane.waiting.append(encoded)
        if self._on_refused is not None:
            lane.rows.append(rows)

    def flush(self) -> None:
        """Return once every batch is acknowledged."""
        while any(lane.waiting for lane in self._lanes.values()):
            self._advance()

    def _lane(self, topic: str, partition: int) -> _Lane:
        key = topic, partition
        if key not in self._lanes:
            self.add(topic, [partition])
            if self._identity is None:
                self._identity = self._ask_identity()
            lane = self._lanes[key] = _Lane(topic, partition, self._identity)
            if self._on_refused is not None:
                # A broker accepts any first sequence number of an unknown producer: if the first
                # batch were rejected, later ones would be written, and the rest of the first could
                # not be sent again behind them.
                lane.in_flight_max = 1
        return self._lanes[key]

    def _ask_identity(self) -> Sender:
        if self._transaction is not None:
            return Sender(*self._transaction.producer, 0)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

        def attempt() -> Sender:
            # Version 6 adds two-phase commit, which is not used here.
            response = self._brokers.ask(request, InitProducerIdResponse, max_version=5)
            if response.error_code:
                raise ApiError(ErrorCode(response.error_code))
            return Sender(response.producer_id, response.producer_epoch, 0)

        return self._brokers.retry(attempt)

    def _advance(self) -> None:
        """Receive one response, or wait until a retry is due; then send what may be sent."""
        busy = next((line for line in self._connections.values() if line.in_flight), None)
        if busy is not None:
            self._collect(busy)
        else:
            retry_at = min(lane.retry_at for lane in self._lanes.values() if lane.has_failed)
            time.sleep(max(retry_at - time.monotonic(), 0.0))
        now = time.monotonic()
        for lane in self._lanes.values():
            if lane.has_failed and not lane.in_flight and now >= lane.retry_at:
                self._ask_about(lane)
                lane.restart()
            self._let_go(lane)

    def _let_go(self, lane: _Lane) -> None:
        """Send the lane's batches up to the in-flight limit."""
        while lane.can_send:
            try:
                connection = self._connect(lane)
                if connection.in_flight >= _IN_FLIGHT_MAX:
                    return
                batch = lane.waiting[lane.in_flight]
                connection.send(self._request(lane, batch), max_version=self._version_max)
            except (NotReachable, TimedOut) as error:
                self._fail(lane, error)
                self._drop_closed()
                return
            except ApiError as error:
                self._fail(lane, error)
                return
            self._awaited[connection].append(lane)
            lane.in_flight += 1

    def _connect(self, lane: _Lane) -> PipelinedConnection:
        if lane.leader is None:
            lane.leader = self._brokers.address(self._leader_of(lane))
        known = self._connections.get(lane.leader)
        if known is not None and known.is_open:
            return known
        opened = PipelinedConnection(
            lane.leader,
            client_id=self._brokers.client_id,
            timeout_s=min(self._settings.timeout_s, 30.0),
            security=self._brokers.security,
        )
        if known is not None:
            del self._awaited[known]
        self._connections[lane.leader] = opened
        self._awaited[opened] = deque()
        return opened

    def _leader_of(self, lane: _Lane) -> int:
        key = lane.topic, lane.partition
        if key not in self._leaders:
            # For the whole topic: with many partitions, one request for each takes longer than
            # writing.
            for partition in self._brokers.topic(lane.topic).partitions:
                self._leaders[lane.topic, partition.partition_index] = partition.leader_id
        # Once: a lane that returns here has failed, and the known leader is not to be trusted.
        known = self._leaders.pop(key, -1)
        return known if known >= 0 else self._brokers.leaders([key])[key]

    @property
    def _version_max(self) -> int:
        return _PRODUCE_VERSION_MAX if self._transaction is None else _TRANSACTIONAL_VERSION_MAX

    def _request(self, lane: _Lane, batch: EncodedBatch) -> ProduceRequest:
        parts: list[bytes | bytearray | memoryview] = [batch.header, batch.payload]
        data = PartitionProduceData(index=lane.partition, records=parts)
        transaction = self._transaction
        return ProduceRequest(
            transactional_id=None if transaction is None else transaction.transactional_id,
            acks=_ALL_IN_SYNC,
            timeout_ms=int(min(self._settings.timeout_s, 30.0) * 1000),
            topic_data=[TopicProduceData(name=lane.topic, partition_data=[data])],
        )

    def _collect(self, connection: PipelinedConnection) -> None:
        lane = self._awaited[connection][0]
        try:
            response = connection.receive(ProduceResponse, timeout_s=self._settings.timeout_s)
        except (NotReachable, TimedOut) as error:
            self._fail(lane, error)
            self._drop_closed()
            return
        self._awaited[connection].popleft()
        lane.in_flight -= 1
        row = response.responses[0].partition_responses[0]
        if lane.has_failed:
            # The batch is sent again after the failed one, independent of its response.
            return
        if row.error_code in _WRITTEN:
            self.records_sent += lane.succeed().records_count
            return
        refusal = _refusal(lane, row)
        if self._on_refused is None or refusal.code not in _RECORD_REFUSALS:
            self._fail(lane, refusal)
        else:
            # After the outstanding responses have arrived.
            lane.refusal, lane.has_failed, lane.retry_at = refusal, True, 0.0

    def _ask_about(self, lane: _Lane) -> None:
        """Halve a rejected batch; skip a single rejected record if `on_refused` allows it."""
        refusal, lane.refusal = lane.refusal, None
        if refusal is None:
            return
        assert self._on_refused is not None
        first, *following = lane.rows
        count = len(first.values)
        if count == 1 or refusal.code in TOPIC_REFUSALS:
            self._on_refused(lane.topic, first, refusal)
            lane.renumbered += 1
            parts = following
        else:
            parts = [first.slice(0, count // 2), first.slice(count // 2, count), *following]
        waited = sum(batch.records_count for batch in lane.waiting)
        lane.sender = lane.sender.before(waited)
        lane.waiting.clear()
        lane.rows.clear()
        for rows in parts:
            for encoded in self._encode(lane, rows):
                self._append(lane, encoded, rows)

    def _drop_closed(self) -> None:
        """Drop outstanding responses of broken connections; their lanes send again."""
        for connection, lanes in self._awaited.items():
            if not connection.is_open:
                for lane in lanes:
                    lane.in_flight -= 1
                    lane.has_failed = True
                lanes.clear()

    def _fail(self, lane: _Lane, error: ApiError | NotReachable | TimedOut) -> None:
        """Schedule a retry of a lane; raise the error if it is permanent or the timeout is over."""
        is_final = isinstance(error, ApiError) and not error.code.is_retriable
        if is_final or not lane.postpone(self._settings.timeout_s):
            raise error


def _refusal(lane: _Lane, row: PartitionProduceResponse) -> ApiError:
    code = ErrorCode(row.error_code)
    reason = row.error_message or code.message
    if row.record_errors:
        first = row.record_errors[0]
        reason += f" Record {first.batch_index}: {first.batch_index_error_message or code.message}"
    if code is ErrorCode.MESSAGE_TOO_LARGE:
        reason += " Let batches be smaller than the topic's max.message.bytes, or raise that."
    return ApiError(code, f"{lane} refuses a batch: {reason}")
