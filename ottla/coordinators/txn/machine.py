"""What may happen to a transactional id, and what comes of it. Pure.

Each decision takes the id as it is and returns an `Outcome`: what has to be stored, if anything, and
what the client is told once it is. Follows TransactionCoordinator and TransactionMetadata.
"""

from collections.abc import Collection
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.coordinators.txn.state import (
    AT_REST,
    EPOCH_MAX,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    PREPARED,
    TopicPartition,
    Transaction,
    TransactionState,
    is_exhausted,
)


class Producer(NamedTuple):
    """A producer id and epoch as a request names them; -1 and -1 where it names none."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


NO_PRODUCER = Producer()


class Outcome(NamedTuple):
    """The next state, to be stored; None where nothing changes. `code` is told when it is."""

    code: ErrorCode
    next: Transaction | None = None


def needs_producer_id(transaction: Transaction | None, expected: Producer) -> bool:
    """Tell whether `init_producer_id` will want a producer id that nobody has had."""
    if transaction is None:
        return True
    is_asked_for = expected == NO_PRODUCER or (
        expected.producer_epoch == transaction.producer_epoch
    )
    return transaction.is_epoch_exhausted and transaction.state in AT_REST and is_asked_for


def new_transaction(transactional_id: str, producer_id: int, timeout_ms: int) -> Transaction:
    """Return an id that is used for the first time; its epoch comes with `init_producer_id`."""
    return Transaction(transactional_id, producer_id, timeout_ms=timeout_ms)


def init_producer_id(
    transaction: Transaction, expected: Producer, timeout_ms: int, fresh_id: int, now_ms: int
) -> Outcome:
    """Make the caller the only producer of the id; `fresh_id` for the case of `needs_producer_id`.

    An ongoing transaction is aborted first, under an epoch that nobody gets: the caller hears
    CONCURRENT_TRANSACTIONS and comes again.
    """
    if not _may_follow(transaction, expected):
        return Outcome(ErrorCode.PRODUCER_FENCED)
    if transaction.state in PREPARED:
        return Outcome(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state is TransactionState.ONGOING:
        return Outcome(ErrorCode.CONCURRENT_TRANSACTIONS, fenced(transaction, now_ms))
    assert transaction.state in AT_REST
    if needs_producer_id(transaction, expected):
        return Outcome(
            ErrorCode.NONE,
            _with_new_id(transaction, fresh_id, timeout_ms, now_ms, expected != NO_PRODUCER),
        )
    return _with_next_epoch(transaction, expected, timeout_ms, now_ms)


def _may_follow(transaction: Transaction, expected: Producer) -> bool:
    """Tell whether the producer that the request names is, or just was, the id's own (KIP-360)."""
    if expected == NO_PRODUCER or transaction.producer_epoch == NO_PRODUCER_EPOCH:
        return True
    if expected.producer_id == transaction.producer_id:
        return True
    # It did not hear of its new producer id.
    is_former = expected.producer_id == transaction.last_producer_id
    return is_former and is_exhausted(expected.producer_epoch)


def _with_new_id(
    transaction: Transaction, fresh_id: int, timeout_ms: int, now_ms: int, is_continued: bool
) -> Transaction:
    former = transaction.producer_id if is_continued else NO_PRODUCER_ID
    former_epoch = transaction.producer_epoch if is_continued else NO_PRODUCER_EPOCH
    return transaction.moved(
        TransactionState.EMPTY,
        now_ms,
        producer_id=fresh_id,
        producer_epoch=0,
        last_producer_id=former,
        last_producer_epoch=former_epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        started_ms=NO_TIMESTAMP,
    )


def _with_next_epoch(
    transaction: Transaction, expected: Producer, timeout_ms: int, now_ms: int
) -> Outcome:
    epoch, last_epoch = transaction.producer_epoch, transaction.last_producer_epoch
    is_first = epoch == NO_PRODUCER_EPOCH
    if expected == NO_PRODUCER:
        epoch, last_epoch = epoch + 1, NO_PRODUCER_EPOCH
    elif is_first or expected.producer_epoch == epoch:
        epoch, last_epoch = epoch + 1, epoch
    elif expected.producer_epoch != last_epoch:
        return Outcome(ErrorCode.PRODUCER_FENCED)
    # Else the producer asks again for the bump whose answer it did not get.
    moved = transaction.moved(
        TransactionState.EMPTY,
        now_ms,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        started_ms=NO_TIMESTAMP,
    )
    return Outcome(ErrorCode.NONE, moved)


def fenced(transaction: Transaction, now_ms: int) -> Transaction:
    """Abort an ongoing transaction under a higher epoch, so that its producer can do no more."""
    assert transaction.producer_epoch < EPOCH_MAX
    fence = transaction.moved(
        TransactionState.PREPARE_EPOCH_FENCE,
        now_ms,
        producer_epoch=transaction.producer_epoch + 1,
        last_producer_epoch=NO_PRODUCER_EPOCH,
    )
    return fence.moved(TransactionState.PREPARE_ABORT, now_ms)


def _identity_error(transaction: Transaction | None, producer: Producer) -> ErrorCode:
    if transaction is None or transaction.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != producer.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


def add_partitions(
    transaction: Transaction | None,
    producer: Producer,
    partitions: Collection[TopicPartition],
    now_ms: int,
) -> Outcome:
    """Make partitions part of the transaction; the first begin it."""
    code = _identity_error(transaction, producer)
    if code is not ErrorCode.NONE or transaction is None:
        return Outcome(code)
    if transaction.state in PREPARED:
        return Outcome(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_ongoing = transaction.state is TransactionState.ONGOING
    if is_ongoing and transaction.partitions.issuperset(partitions):
        return Outcome(ErrorCode.NONE)
    moved = transaction.moved(
        TransactionState.ONGOING,
        now_ms,
        partitions=transaction.partitions.union(partitions),
        started_ms=transaction.started_ms if is_ongoing else now_ms,
    )
    return Outcome(ErrorCode.NONE, moved)


def verify_partition(
    transaction: Transaction | None, producer: Producer, partition: TopicPartition
) -> ErrorCode:
    """Tell whether the producer may write to the partition now (KIP-890).

    TRANSACTION_ABORTABLE where the partition is not part of the transaction.
    """
    code = _identity_error(transaction, producer)
    if code is not ErrorCode.NONE or transaction is None:
        return code
    if transaction.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_part = partition in transaction.partitions
    return ErrorCode.NONE if is_part else ErrorCode.TRANSACTION_ABORTABLE


def end(
    transaction: Transaction | None, producer: Producer, *, is_commit: bool, now_ms: int
) -> Outcome:
    """Decide the outcome of the transaction; to be repeated it must be the same outcome."""
    code = _identity_error(transaction, producer)
    if code is not ErrorCode.NONE or transaction is None:
        return Outcome(code)
    prepared = TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT
    completed = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
    if transaction.state is TransactionState.ONGOING:
        return Outcome(ErrorCode.NONE, transaction.moved(prepared, now_ms))
    if transaction.state is completed:
        return Outcome(ErrorCode.NONE)
    if transaction.state is prepared:
        return Outcome(ErrorCode.CONCURRENT_TRANSACTIONS)
    return Outcome(ErrorCode.INVALID_TXN_STATE)


def complete(transaction: Transaction, now_ms: int) -> Transaction:
    """Return the transaction whose markers are all written."""
    assert transaction.state in PREPARED
    is_commit = transaction.state is TransactionState.PREPARE_COMMIT
    state = TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT
    return transaction.moved(state, now_ms, partitions=frozenset())
