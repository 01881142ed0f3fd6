"""The protocol of the transactional sink: every micro-batch is written once, whichever processes
fail.

Each task writes its rows in a transaction of its own and leaves it open. When all tasks are done,
the driver *decides* the batch: it writes the batch number and the list of its transactions to the
ledger, and then commits them. After a failure Spark repeats the batch, and the ledger determines
what happens:

* not decided: the tasks begin their transactions again, which aborts the old ones, and write their
  rows;
* decided: nothing is written; each task commits its transaction from the list, and discards its
  rows;
* decided, but a transaction has been aborted since (it timed out while the query was down): only
  that task writes its rows again. This requires the same tasks as before; a source that reads the
  same offsets provides them.

Zombies: a run of the query takes over the ledger before it reads it, so that earlier runs can no
longer decide. A task that begins a transaction fences earlier producers with the same transactional
id. This module does not use Spark.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.brokers import Brokers
from ottla.client.errors import Unsupported
from ottla.client.transaction import (
    LOST,
    ProducerIdAndEpoch,
    Transaction,
    begin,
    find_lost,
    list_open,
)
from ottla.streams.spark.connector.ledger import Ledger, LedgerEntry

Write = Callable[[Transaction], int]


class Attempt(NamedTuple):
    """An attempt of one task of a batch, in one run of a query."""

    query_id: str
    run_id: str
    batch_id: int
    task: int


@dataclass(frozen=True)
class Share:
    """The result of a task that the driver needs: the transaction to commit, and the ledger's entry
    as the task read it.

    `is_recovered` is True if the transaction was decided earlier and is committed already;
    `is_first` is True if the task was the first of its run. `begun_at` is in seconds of the wall
    clock.
    """

    attempt: Attempt
    entry: LedgerEntry
    producer: ProducerIdAndEpoch | None
    records: int
    begun_at: float
    is_recovered: bool
    is_first: bool


def write_share(brokers: Brokers, attempt: Attempt, write: Write | None, timeout_ms: int) -> Share:
    """Write a task's share of a batch with `write` (None if it has no rows), unless it is written
    already.

    The transaction is left open; it is aborted if `write` raises.
    """
    ledger = Ledger(brokers, attempt.query_id)
    begun_at = time.time()
    entry, is_first = ledger.enter(attempt.run_id, attempt.task, timeout_ms)
    share = Share(attempt, entry, None, 0, begun_at, is_recovered=False, is_first=is_first)
    name = ledger.transactional_id(attempt.task)
    if attempt.batch_id < entry.batch_id:
        raise ApiError(
            ErrorCode.INVALID_TXN_STATE,
            f"Batch {attempt.batch_id} would be skipped, because {ledger.name!r} has batch "
            f"{entry.batch_id}: the checkpoint is older than the target. Restore the newest "
            "checkpoint, or start with a new checkpoint and a new target.",
        )
    if attempt.batch_id == entry.batch_id:
        decided = entry.transactions[attempt.task : attempt.task + 1]
        producer = decided[0] if decided else None
        if producer is None or _is_committed(brokers, Transaction(name, producer)):
            return replace(share, producer=producer, is_recovered=True)
    if write is None:
        return share
    transaction = begin(brokers, name, timeout_ms)
    with contextlib.ExitStack() as stack:
        stack.callback(_give_up, brokers, [transaction])
        records = write(transaction)
        stack.pop_all()
    return replace(share, producer=transaction.producer, records=records)


def commit_shares(brokers: Brokers, shares: Sequence[Share], timeout_ms: int) -> None:
    """Make a batch visible: decide it, then commit the transactions of all tasks.

    If this fails before the decision, nothing of the batch becomes visible. If it fails afterwards,
    the repeated batch completes it.
    """
    shares = sorted(shares, key=lambda share: share.attempt.task)
    if not shares:
        return
    attempt = shares[0].attempt
    ledger = Ledger(brokers, attempt.query_id)
    entry = _agreed(ledger, shares)
    if attempt.batch_id < entry.batch_id:
        return
    producers = tuple(share.producer for share in shares)
    written = [share for share in shares if share.producer is not None and not share.is_recovered]
    _check_alive(brokers, ledger, written, timeout_ms)
    if attempt.batch_id == entry.batch_id:
        producers = _complete(brokers, ledger, entry, shares)
    if written:
        ledger.write(replace(entry, batch_id=attempt.batch_id, transactions=producers))
    for share in written:
        _transaction(ledger, share).commit(brokers)
    if any(share.is_first for share in shares):
        _sweep(brokers, ledger, producers, timeout_ms)


def abort_shares(brokers: Brokers, shares: Sequence[Share]) -> None:
    """Abort the tasks' transactions unless the batch is decided: the failure may have come after
    the decision.
    """
    if not shares:
        return
    attempt = shares[0].attempt
    ledger = Ledger(brokers, attempt.query_id)
    # Abort the committer's transaction first: a read waits for an unfinished decision, and a
    # finished one cannot be aborted.
    for committer in dict.fromkeys(share.entry.committer for share in shares):
        _give_up(brokers, [Transaction(ledger.name, committer)])
    if ledger.read().batch_id < attempt.batch_id:
        open_ones = [share for share in shares if share.producer and not share.is_recovered]
        _give_up(brokers, [_transaction(ledger, share) for share in open_ones])


def _agreed(ledger: Ledger, shares: Sequence[Share]) -> LedgerEntry:
    """Return the ledger entry the tasks agree on; raise ApiError if they are of different runs.

    Tasks of one run that come late or at the same time may have taken over the ledger one after the
    other. Their entries then differ only in the committer, and the last one is valid.
    """
    entry = shares[0].entry
    results = [share.entry for share in shares if share.entry != entry]
    if not results:
        return entry
    latest = ledger.read(require_stable=False)
    if any(
        replace(ledger_entry, committer=latest.committer) != latest
        for ledger_entry in (entry, *results)
    ):
        raise ApiError(
            ErrorCode.PRODUCER_FENCED,
            f"Two runs of the query of {ledger.name!r} write the same batch: stop one of them.",
        )
    return latest


def _transaction(ledger: Ledger, share: Share) -> Transaction:
    assert share.producer is not None
    return Transaction(ledger.transactional_id(share.attempt.task), share.producer)


def _is_committed(brokers: Brokers, transaction: Transaction) -> bool:
    """Commit a decided transaction, which may be committed already; return False if it is lost."""
    try:
        transaction.commit(brokers)
    except ApiError as error:
        if error.code in LOST:
            return False
        raise
    return True


def _check_alive(
    brokers: Brokers, ledger: Ledger, shares: Sequence[Share], timeout_ms: int
) -> None:
    """Raise unless all transactions are open and have enough time left: a decision is final."""
    seconds = time.time() - min((share.begun_at for share in shares), default=time.time())
    transactions = [_transaction(ledger, share) for share in shares]
    lost_transactions: list[Transaction] = []
    # Brokers before 3.0 cannot list transactions.
    with contextlib.suppress(Unsupported):
        lost_transactions = find_lost(brokers, transactions)
    if lost_transactions or seconds * 1000 > timeout_ms / 2:
        raise ApiError(
            ErrorCode.INVALID_TXN_STATE,
            f"The batch took {seconds:.0f} s, and the transaction timeout of {timeout_ms / 1000:g} s must "
            "be at least twice as long: use smaller batches (maxOffsetsPerTrigger), or raise "
            f"kafka.transaction.timeout.ms. Aborted before the commit: {len(lost_transactions)} of {len(shares)}.",
        )


def _complete(
    brokers: Brokers, ledger: Ledger, entry: LedgerEntry, shares: Sequence[Share]
) -> tuple[ProducerIdAndEpoch | None, ...]:
    """Commit decided transactions of tasks that no longer exist; return the batch's transactions."""
    without_share = entry.transactions[len(shares) :]
    again = [share for share in shares if not share.is_recovered]
    decided = [
        Transaction(ledger.transactional_id(task), producer)
        for task, producer in enumerate(without_share, len(shares))
        if producer is not None
    ]
    lost_count = len(again) + sum(
        not _is_committed(brokers, transaction) for transaction in decided
    )
    is_same = len(shares) == len(entry.transactions) and all(share.producer for share in again)
    if lost_count and not is_same:
        raise ApiError(
            ErrorCode.INVALID_TXN_STATE,
            f"Batch {entry.batch_id} was decided with {len(entry.transactions)} tasks, {lost_count} of their "
            f"transactions have timed out since, and the batch now has {len(shares)} tasks, which are "
            "not the same: start the query with its previous settings.",
        )
    return (*(share.producer for share in shares), *without_share)


def _give_up(brokers: Brokers, transactions: Sequence[Transaction]) -> None:
    """Abort transactions; an unreachable one is aborted when its id is used again, or when it times
    out.
    """
    with contextlib.suppress(OttlaError):
        for transaction in transactions:
            transaction.abort(brokers)


def _sweep(
    brokers: Brokers,
    ledger: Ledger,
    producers: Sequence[ProducerIdAndEpoch | None],
    timeout_ms: int,
) -> None:
    """Abort open transactions of earlier runs, except the transactions of tasks that wrote in this
    batch.
    """
    names = {
        ledger.transactional_id(task)
        for task, producer in enumerate(producers)
        if producer is not None
    }
    with contextlib.suppress(OttlaError):
        for name in list_open(brokers, f"{ledger.name}-"):
            if name not in names:
                transaction = begin(brokers, name, timeout_ms)
                transaction.abort(brokers)
