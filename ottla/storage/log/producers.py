"""The producer state of a log, the basis of idempotence and transactions.

For each producer id it keeps the epoch, the last batches and the start of the open transaction. It
checks every batch of an idempotent producer; a log restores it from snapshots. Pure: the log
handles the files. Follows ProducerStateManager, ProducerAppendInfo and ProducerStateEntry (KIP-98).
"""

import bisect
import struct
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode
from ottla.storage.files.formats import (
    SNAPSHOT_CRC_START,
    SNAPSHOT_ENTRY,
    SNAPSHOT_HEADER,
    SNAPSHOT_VERSION,
)
from ottla.storage.files.txn_index import AbortedTransaction
from ottla.wire.records import control
from ottla.wire.records.batch import (
    CONTROL_BIT,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    crc32c,
)
from ottla.wire.records.records import decode_batch

# Kafka keeps five: a client has so many in flight to one broker. The Java client may have five more
# in flight to the next leader. While the former one does not respond, it sends new batches there
# before it repeats those in flight, which by then may be the oldest of more than five.
BATCHES_KEPT = 10
NO_PRODUCER_EPOCH = -1
NO_OFFSET = -1
_SEQUENCE_MASK = 0x7FFFFFFF


class WrittenBatch(NamedTuple):
    """One of a producer's last batches; `timestamp` is its largest, in ms."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_sequence(self) -> int:
        """Sequence number of the first record."""
        return (self.last_sequence - self.offset_delta) & _SEQUENCE_MASK

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        return self.last_offset - self.offset_delta


class ProducerStateEntry:
    """One producer id. `batches` are oldest first and all of `epoch`.

    `last_timestamp` (ms) is the time of its last batch, by which it expires. `markers_count` is how
    many of its transactions have ended here since the log was loaded.
    """

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "markers_count",
        "transaction_first_offset",
    )

    def __init__(self, epoch: int, last_timestamp: int = -1) -> None:
        self.epoch = epoch
        self.batches: list[WrittenBatch] = []
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = -1
        self.markers_count = 0
        self.transaction_first_offset = NO_OFFSET


class CompletedTransaction(NamedTuple):
    """A transaction whose marker is in the log."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerState:
    """All producers of a log, valid for every record before `end_offset`."""

    def __init__(self, end_offset: int = 0) -> None:
        self.producers: dict[int, ProducerStateEntry] = {}
        self.end_offset = end_offset
        # First offset of each open transaction, in rising order.
        self.open_transactions: dict[int, int] = {}
        # Ended, but the marker may not be replicated yet: in rising order of the first offset.
        self.undecided: list[CompletedTransaction] = []

    def __len__(self) -> int:
        return len(self.producers)

    # Deciding

    def check(self, header: BatchHeader, *, must_begin: bool = False) -> WrittenBatch | None:
        """Check a produced batch; return None if it is the next one, or the batch that it
        duplicates.

        An unknown producer may continue with any sequence number, because its state may have
        expired; with `must_begin` it has to begin with 0.
        Raises INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID or
        INVALID_TXN_STATE.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None:
            if must_begin and header.base_sequence > 0:
                raise ApiError(
                    ErrorCode.UNKNOWN_PRODUCER_ID,
                    f"Producer {header.producer_id} is unknown and does not begin with sequence "
                    f"number 0 but with {header.base_sequence}.",
                )
            return None
        if header.producer_epoch < producer.epoch:
            raise ApiError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Producer {header.producer_id} writes with epoch {header.producer_epoch}; "
                f"epoch {producer.epoch} has taken over.",
            )
        sequence = header.base_sequence
        # Coordinators write for transactional producers without sequence numbers.
        if sequence >= 0:
            if header.producer_epoch == producer.epoch:
                batches = producer.batches
                last = batches[-1].last_sequence if batches else NO_SEQUENCE
                if sequence != (last + 1) & _SEQUENCE_MASK:
                    duplicate = _known(batches, header)
                    if duplicate is None:
                        raise _out_of_order(header, f"after {last} the next is {last + 1}")
                    return duplicate
            elif sequence and producer.epoch != NO_PRODUCER_EPOCH:
                raise _out_of_order(header, f"epoch {header.producer_epoch} must begin with 0")
        if producer.transaction_first_offset >= 0 and not header.attributes & TRANSACTIONAL_BIT:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {header.producer_id} has a transaction open and writes outside it.",
            )
        return None

    def check_marker(
        self, header: BatchHeader, marker: control.EndTransactionMarker | None
    ) -> None:
        """Check a transaction marker from a coordinator; a stale one is rejected."""
        producer = self.producers.get(header.producer_id)
        if producer is None or marker is None:
            return
        if header.producer_epoch < producer.epoch:
            raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise ApiError(ErrorCode.TRANSACTION_COORDINATOR_FENCED)

    # Following the log

    def note(
        self,
        header: BatchHeader,
        base_offset: int,
        marker: control.EndTransactionMarker | None,
        now_ms: int,
    ) -> CompletedTransaction | None:
        """Update the state with a producer's batch that was appended at `base_offset`.

        Returns the transaction that it ends, if it is a control batch with a `marker`.
        """
        if header.attributes & CONTROL_BIT:
            if marker is None:
                return None
            return self._end_transaction(header, base_offset, marker, now_ms)
        producer = self._producer(header)
        batches = producer.batches
        last_offset = base_offset + header.last_offset_delta
        batches.append(
            WrittenBatch(
                header.last_sequence, last_offset, header.last_offset_delta, header.max_timestamp
            )
        )
        if len(batches) > BATCHES_KEPT:
            del batches[0]
        # Kafka goes by record time alone, and therefore expires a producer that loads old records.
        producer.last_timestamp = max(header.max_timestamp, now_ms)
        if header.attributes & TRANSACTIONAL_BIT and producer.transaction_first_offset < 0:
            producer.transaction_first_offset = base_offset
            self.open_transactions[base_offset] = header.producer_id
        return None

    def _end_transaction(
        self,
        header: BatchHeader,
        base_offset: int,
        marker: control.EndTransactionMarker,
        now_ms: int,
    ) -> CompletedTransaction | None:
        producer = self._producer(header)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.markers_count += 1
        producer.last_timestamp = max(header.max_timestamp, now_ms)
        first_offset = producer.transaction_first_offset
        producer.transaction_first_offset = NO_OFFSET
        if first_offset < 0:
            return None
        del self.open_transactions[first_offset]
        aborted = marker.type == control.ControlType.ABORT
        ended = CompletedTransaction(header.producer_id, first_offset, base_offset, aborted)
        bisect.insort(self.undecided, ended, key=_first_offset)
        return ended

    def _producer(self, header: BatchHeader) -> ProducerStateEntry:
        """Return the producer; a new epoch begins without batches."""
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self.producers[header.producer_id] = ProducerStateEntry(
                header.producer_epoch
            )
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        return producer

    # Transactions

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Return True if the producer has an open transaction in this epoch."""
        producer = self.producers.get(producer_id)
        if producer is None or producer.transaction_first_offset < 0:
            return False
        return producer.epoch == producer_epoch

    def first_unstable_offset(self, log_start_offset: int = 0) -> int | None:
        """Return the first offset of a transaction that is open or whose marker may still be lost.

        Never below the log start: DeleteRecords may have removed the first records of a
        transaction.
        """
        first = next(iter(self.open_transactions), None)
        if self.undecided:
            undecided = self.undecided[0].first_offset
            first = undecided if first is None else min(first, undecided)
        return None if first is None else max(first, log_start_offset)

    def index_entry(self, ended: CompletedTransaction) -> AbortedTransaction:
        """Return the entry of the transaction index for an aborted transaction."""
        stable = next(iter(self.open_transactions), ended.last_offset + 1)
        return AbortedTransaction(ended.producer_id, ended.first_offset, ended.last_offset, stable)

    def decide_up_to(self, high_watermark: int) -> None:
        """Remove ended transactions whose marker is below the high watermark."""
        if self.undecided:
            self.undecided = [
                ended for ended in self.undecided if ended.last_offset >= high_watermark
            ]

    # Ageing

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Remove producers that have been inactive for too long and have no open transaction."""
        expired = [
            producer_id
            for producer_id, producer in self.producers.items()
            if producer.transaction_first_offset < 0
            and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        return len(expired)

    def truncate_from_start(self, log_start_offset: int) -> None:
        """Remove transactions that are before the start of the log."""
        self.undecided = [
            ended for ended in self.undecided if ended.last_offset >= log_start_offset
        ]

    # Snapshots

    def encode_snapshot(self) -> bytes:
        """Return the content of a `.snapshot` file, which contains only the last batch of each
        producer.
        """
        body = bytearray(struct.pack(">i", len(self.producers)))
        for producer_id, producer in self.producers.items():
            last = producer.batches[-1] if producer.batches else _NOTHING_WRITTEN
            body += SNAPSHOT_ENTRY.pack(
                producer_id,
                producer.epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.transaction_first_offset,
            )
        return struct.pack(">hI", SNAPSHOT_VERSION, crc32c(bytes(body))) + body

    @classmethod
    def decode_snapshot(cls, data: bytes, end_offset: int) -> "ProducerState | None":
        """Return the state before `end_offset`; None if the file is damaged."""
        if len(data) < SNAPSHOT_HEADER.size:
            return None
        version, crc, count = SNAPSHOT_HEADER.unpack_from(data)
        size = SNAPSHOT_HEADER.size + count * SNAPSHOT_ENTRY.size
        if (
            version != SNAPSHOT_VERSION
            or len(data) != size
            or crc32c(data[SNAPSHOT_CRC_START:]) != crc
        ):
            return None
        state = cls(end_offset)
        state._load(SNAPSHOT_ENTRY.iter_unpack(data[SNAPSHOT_HEADER.size :]))
        return state

    def _load(self, rows: Iterable[tuple[int, ...]]) -> None:
        for producer_id, epoch, sequence, offset, delta, timestamp, coordinator, first in rows:
            producer = self.producers[producer_id] = ProducerStateEntry(epoch, timestamp)
            producer.coordinator_epoch = coordinator
            producer.transaction_first_offset = first
            if offset >= 0:
                producer.batches.append(WrittenBatch(sequence, offset, delta, timestamp))
            if first >= 0:
                self.open_transactions[first] = producer_id
        self.open_transactions = dict(sorted(self.open_transactions.items()))

    def add_earlier(self, earlier: Iterator[BatchHeader]) -> None:
        """Add batches that a snapshot does not contain; `earlier` is every batch, newest first.

        Not in Kafka: after a restart a duplicate of any of the kept batches is still detected.
        """
        for header in earlier:
            producer = self.producers.get(header.producer_id)
            if producer is None or header.is_control or header.producer_epoch != producer.epoch:
                continue
            batches = producer.batches
            follows = batches and (header.last_sequence + 1) & _SEQUENCE_MASK == (
                batches[0].base_sequence
            )
            if follows and len(batches) < BATCHES_KEPT:
                delta, timestamp = header.last_offset_delta, header.max_timestamp
                written = WrittenBatch(header.last_sequence, header.last_offset, delta, timestamp)
                batches.insert(0, written)


_first_offset = attrgetter("first_offset")
_NOTHING_WRITTEN = WrittenBatch(NO_SEQUENCE, NO_OFFSET, 0, -1)


def parse_marker(data: Buffer, header: BatchHeader) -> control.EndTransactionMarker | None:
    """Return the transaction marker in a control batch; None for batches of other kinds."""
    if not header.attributes & CONTROL_BIT:
        return None
    first = next(iter(decode_batch(data, header=header)), None)
    return None if first is None else control.parse_marker(first)


def _known(batches: list[WrittenBatch], header: BatchHeader) -> WrittenBatch | None:
    """Return the stored batch with the same sequence numbers."""
    last_sequence = header.last_sequence
    for written in batches:
        if written.last_sequence == last_sequence and written.base_sequence == header.base_sequence:
            return written
    return None


def _out_of_order(header: BatchHeader, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Producer {header.producer_id} sends sequence number {header.base_sequence}; {reason}.",
    )
