"""The state machine of a transactional id. Pure.

Each decision takes the current state of the id and returns a `TransitionResult`: the state to
store, if any, and the response that is sent once it is stored. Follows TransactionCoordinator and
TransactionMetadata.

With transaction.version 2 (KIP-890) each end of a transaction bumps the epoch, so that its late
messages cannot be taken for part of the next one. Older clients would not receive the new epoch;
for them the epoch does not change.
"""

from collections.abc import Collection
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.coordinators.txn.state import (
    AT_REST,
    COMPLETED,
    EPOCH_MAX,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    PREPARED,
    TopicPartition,
    TransactionMetadata,
    TransactionState,
    is_exhausted,
)


class ProducerIdAndEpoch(NamedTuple):
    """A producer id and epoch as in a request; -1 and -1 if the request has no producer."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


NO_PRODUCER = ProducerIdAndEpoch()

# The first transaction.version whose clients receive a new epoch with every end of a transaction.
BUMPING_VERSION = 2


class TransitionResult(NamedTuple):
    """The next state, to be stored; None if nothing changes. `code` is sent when it is stored.

    A client of `BUMPING_VERSION` continues as `producer`.
    """

    code: ErrorCode
    next: TransactionMetadata | None = None
    producer: ProducerIdAndEpoch = NO_PRODUCER


def needs_producer_id(
    transaction: TransactionMetadata | None, expected: ProducerIdAndEpoch, version: int
) -> bool:
    """Return True if `init_producer_id` will need a producer id that was never used."""
    if transaction is None:
        return True
    if transaction.state is TransactionState.ONGOING:
        return needs_next_id(transaction, version)
    is_asked_for = expected == NO_PRODUCER or (
        expected.producer_epoch == transaction.producer_epoch
    )
    return transaction.is_epoch_exhausted and transaction.state in AT_REST and is_asked_for


def needs_next_id(transaction: TransactionMetadata | None, version: int) -> bool:
    """Return True if the end of the transaction uses up the last epoch of its producer id."""
    is_bumping = version >= BUMPING_VERSION
    return is_bumping and transaction is not None and transaction.is_epoch_exhausted


def new_transaction(
    transactional_id: str, producer_id: int, timeout_ms: int
) -> TransactionMetadata:
    """Return a new transactional id; `init_producer_id` sets its epoch."""
    return TransactionMetadata(transactional_id, producer_id, timeout_ms=timeout_ms)


class InitProducerIdParameters(NamedTuple):
    """The parameters of InitProducerId; `expected` is the producer that continues, if any
    (KIP-360).

    `fresh_id` is set if `needs_producer_id`, `version` is the cluster's transaction.version.
    """

    expected: ProducerIdAndEpoch
    timeout_ms: int
    fresh_id: int
    version: int


def init_producer_id(
    transaction: TransactionMetadata, parameters: InitProducerIdParameters, now_ms: int
) -> TransitionResult:
    """Make the caller the only producer of the id.

    An ongoing transaction is aborted first, under an epoch that no producer gets: the caller
    receives CONCURRENT_TRANSACTIONS and retries.
    """
    if transaction.state in PREPARED:
        return TransitionResult(ErrorCode.CONCURRENT_TRANSACTIONS)
    if not _may_follow(transaction, parameters.expected):
        return TransitionResult(ErrorCode.PRODUCER_FENCED)
    if transaction.state is TransactionState.ONGOING:
        fencing = fence(
            transaction, now_ms, version=parameters.version, fresh_id=parameters.fresh_id
        )
        return TransitionResult(ErrorCode.CONCURRENT_TRANSACTIONS, fencing)
    assert transaction.state in AT_REST
    if needs_producer_id(transaction, parameters.expected, parameters.version):
        return TransitionResult(ErrorCode.NONE, _with_new_id(transaction, parameters, now_ms))
    return _with_next_epoch(transaction, parameters, now_ms)


def _may_follow(transaction: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Return True if the request's producer is, or was last, the producer of the id (KIP-360)."""
    if expected == NO_PRODUCER or transaction.producer_epoch == NO_PRODUCER_EPOCH:
        return True
    if expected.producer_id == transaction.producer_id:
        return True
    # The response with its new producer id was lost.
    is_former = expected.producer_id == transaction.previous_producer_id
    return is_former and is_exhausted(expected.producer_epoch)


def _with_new_id(
    transaction: TransactionMetadata, parameters: InitProducerIdParameters, now_ms: int
) -> TransactionMetadata:
    is_continued = parameters.expected != NO_PRODUCER
    return transaction.moved(
        TransactionState.EMPTY,
        now_ms,
        producer_id=parameters.fresh_id,
        producer_epoch=0,
        last_producer_epoch=transaction.producer_epoch if is_continued else NO_PRODUCER_EPOCH,
        timeout_ms=parameters.timeout_ms,
        partitions=frozenset(),
        started_ms=NO_TIMESTAMP,
    )


def _with_next_epoch(
    transaction: TransactionMetadata, parameters: InitProducerIdParameters, now_ms: int
) -> TransitionResult:
    expected = parameters.expected
    epoch, last_epoch = transaction.producer_epoch, transaction.last_producer_epoch
    is_first = epoch == NO_PRODUCER_EPOCH
    if expected == NO_PRODUCER:
        epoch, last_epoch = epoch + 1, NO_PRODUCER_EPOCH
    elif is_first or expected.producer_epoch == epoch:
        epoch, last_epoch = epoch + 1, epoch
    elif expected.producer_epoch != last_epoch:
        return TransitionResult(ErrorCode.PRODUCER_FENCED)
    # Otherwise the producer retries the bump whose response was lost.
    moved = transaction.moved(
        TransactionState.EMPTY,
        now_ms,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=parameters.timeout_ms,
        partitions=frozenset(),
        started_ms=NO_TIMESTAMP,
    )
    return TransitionResult(ErrorCode.NONE, moved)


def fence(
    transaction: TransactionMetadata, now_ms: int, *, version: int, fresh_id: int = NO_PRODUCER_ID
) -> TransactionMetadata:
    """Abort an ongoing transaction under a higher epoch, so that its producer is fenced.

    `fresh_id` is set if `needs_next_id`.
    """
    assert transaction.state is TransactionState.ONGOING
    if version >= BUMPING_VERSION:
        return _ended_with_bump(
            transaction, now_ms, is_commit=False, version=version, fresh_id=fresh_id
        )
    fence = transaction.moved(
        TransactionState.PREPARE_EPOCH_FENCE,
        now_ms,
        producer_epoch=min(transaction.producer_epoch + 1, EPOCH_MAX),
        last_producer_epoch=NO_PRODUCER_EPOCH,
    )
    return fence.moved(TransactionState.PREPARE_ABORT, now_ms, client_version=0)


def _identity_error(
    transaction: TransactionMetadata | None, producer: ProducerIdAndEpoch
) -> ErrorCode:
    if transaction is None or transaction.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != producer.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


def add_partitions(
    transaction: TransactionMetadata | None,
    producer: ProducerIdAndEpoch,
    partitions: Collection[TopicPartition],
    now_ms: int,
    *,
    version: int = 0,
) -> TransitionResult:
    """Add partitions to the transaction; the first ones begin it. `version` is the client's."""
    if transaction is not None and transaction.state in PREPARED:
        # Checked before the producer's identity: it may be the producer that follows the end.
        return TransitionResult(ErrorCode.CONCURRENT_TRANSACTIONS)
    code = _identity_error(transaction, producer)
    if code is not ErrorCode.NONE or transaction is None:
        return TransitionResult(code)
    is_ongoing = transaction.state is TransactionState.ONGOING
    if is_ongoing and transaction.partitions.issuperset(partitions):
        return TransitionResult(ErrorCode.NONE)
    moved = transaction.moved(
        TransactionState.ONGOING,
        now_ms,
        partitions=transaction.partitions.union(partitions),
        started_ms=transaction.started_ms if is_ongoing else now_ms,
        client_version=version,
    )
    return TransitionResult(ErrorCode.NONE, moved)


def verify_partition(
    transaction: TransactionMetadata | None, producer: ProducerIdAndEpoch, partition: TopicPartition
) -> ErrorCode:
    """Return the error code for a write of the producer to the partition (KIP-890).

    TRANSACTION_ABORTABLE if the partition is not part of the transaction.
    """
    code = _identity_error(transaction, producer)
    if code is not ErrorCode.NONE or transaction is None:
        return code
    if transaction.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_part = partition in transaction.partitions
    return ErrorCode.NONE if is_part else ErrorCode.TRANSACTION_ABORTABLE


def end(
    transaction: TransactionMetadata | None,
    producer: ProducerIdAndEpoch,
    *,
    is_commit: bool,
    now_ms: int,
) -> TransitionResult:
    """Decide the outcome of a client's transaction that keeps its epoch.

    Without an ongoing transaction only a retry succeeds. An abort is refused after a commit, whose
    response the client may have lost; also if it is meant for a next transaction, whose first
    partitions were lost with the former coordinator: both requests have the same epoch.
    """
    code = _identity_error(transaction, producer)
    if code is not ErrorCode.NONE or transaction is None:
        return TransitionResult(code)
    if transaction.state in PREPARED:
        return TransitionResult(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state is TransactionState.ONGOING:
        return TransitionResult(
            ErrorCode.NONE,
            transaction.moved(
                _prepared(is_commit), now_ms, next_producer_id=NO_PRODUCER_ID, client_version=0
            ),
        )
    # A retry must request the same outcome.
    is_repeated = transaction.state is _completed(is_commit)
    return TransitionResult(ErrorCode.NONE if is_repeated else ErrorCode.INVALID_TXN_STATE)


class Ending(NamedTuple):
    """The parameters of EndTxn from version 5 on; `fresh_id` is set if `needs_next_id`."""

    producer: ProducerIdAndEpoch
    is_commit: bool
    fresh_id: int = NO_PRODUCER_ID


def end_with_bump(
    transaction: TransactionMetadata | None, ending: Ending, now_ms: int
) -> TransitionResult:
    """Decide the outcome of a client's transaction, and bump its epoch for the next one.

    A request with the current epoch ends the transaction, one with the epoch before is a retry. A
    transaction may be aborted before it begins: the client cannot know whether its records have
    arrived.
    """
    if transaction is None:
        return TransitionResult(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.state in PREPARED:
        return TransitionResult(ErrorCode.CONCURRENT_TRANSACTIONS)
    producer, is_commit = ending.producer, ending.is_commit
    is_over_the_edge = (
        transaction.previous_producer_id == producer.producer_id
        and producer.producer_epoch == EPOCH_MAX - 1
        and transaction.producer_epoch == 0
    )
    if transaction.producer_id != producer.producer_id and not is_over_the_edge:
        return TransitionResult(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_repeated = is_over_the_edge or transaction.producer_epoch == producer.producer_epoch + 1
    may_be_repeated = transaction.state in COMPLETED
    if not (is_repeated and may_be_repeated):
        is_repeated = False
        if transaction.producer_epoch != producer.producer_epoch:
            return TransitionResult(ErrorCode.PRODUCER_FENCED)
    if is_repeated:
        if transaction.state is not _completed(is_commit):
            return TransitionResult(ErrorCode.INVALID_TXN_STATE)
        current = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
        return TransitionResult(ErrorCode.NONE, producer=current)
    if is_commit and transaction.state is not TransactionState.ONGOING:
        return TransitionResult(ErrorCode.INVALID_TXN_STATE)
    ended = _ended_with_bump(
        transaction,
        now_ms,
        is_commit=is_commit,
        version=BUMPING_VERSION,
        fresh_id=ending.fresh_id,
    )
    completed = complete(ended, now_ms)
    return TransitionResult(
        ErrorCode.NONE, ended, ProducerIdAndEpoch(completed.producer_id, completed.producer_epoch)
    )


def _ended_with_bump(
    transaction: TransactionMetadata, now_ms: int, *, is_commit: bool, version: int, fresh_id: int
) -> TransactionMetadata:
    is_exhausted_now = transaction.is_epoch_exhausted
    assert fresh_id != NO_PRODUCER_ID or not is_exhausted_now
    has_begun = transaction.state is TransactionState.ONGOING
    return transaction.moved(
        _prepared(is_commit),
        now_ms,
        producer_epoch=min(transaction.producer_epoch + 1, EPOCH_MAX),
        last_producer_epoch=transaction.producer_epoch,
        next_producer_id=fresh_id if is_exhausted_now else NO_PRODUCER_ID,
        started_ms=transaction.started_ms if has_begun else now_ms,
        client_version=version,
    )


def _prepared(is_commit: bool) -> TransactionState:
    return TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT


def _completed(is_commit: bool) -> TransactionState:
    return TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT


def complete(transaction: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    """Return the transaction after all markers are written, with the next producer id if there is
    one.
    """
    assert transaction.state in PREPARED
    is_commit = transaction.state is TransactionState.PREPARE_COMMIT
    has_next = transaction.next_producer_id != NO_PRODUCER_ID
    return transaction.moved(
        _completed(is_commit),
        now_ms,
        partitions=frozenset(),
        producer_id=transaction.next_producer_id if has_next else transaction.producer_id,
        producer_epoch=0 if has_next else transaction.producer_epoch,
        next_producer_id=NO_PRODUCER_ID,
    )
