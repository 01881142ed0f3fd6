"""Writes every micro-batch of a query once, whatever is killed: the protocol of the transactional sink.

Each task writes its rows in a transaction of its own and leaves it open. When all have, the driver *decides*: it
writes the number of the batch and the list of its transactions into the ledger, and then commits them. Where
something dies, Spark runs the batch again, and what is decided tells what to do:

* not decided: the tasks begin their transactions anew, which aborts what was left of them, and write;
* decided: nothing is written; each task commits the transaction that is in the list, and drops its rows;
* decided, but a transaction has been aborted since (its time-out passed while the query was down): that task alone
  writes its rows again. This needs the tasks of before, which a source of the same offsets gives.

Zombies: a run of the query takes over the ledger before it reads it, so that an earlier run decides nothing more;
a task that begins a transaction fences those who wrote under that name. No Spark in here.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.brokers import Brokers
from ottla.client.errors import Unsupported
from ottla.client.transaction import LOST, Producer, Transaction, begin, find_lost, list_open
from ottla.streams.spark.connector.ledger import Entry, Ledger

Write = Callable[[Transaction], int]


class Attempt(NamedTuple):
    """Which attempt at what: a task of a batch, in one run of a query."""

    query_id: str
    run_id: str
    batch_id: int
    task: int


@dataclass(frozen=True)
class Share:
    """What a task leaves to the driver: a transaction to commit, and what the task found in the ledger.

    `is_recovered` tells that the transaction was decided before, and is committed already; `is_first`
    that the task was the first of its run. `begun_at` is in seconds of the wall clock.
    """

    attempt: Attempt
    entry: Entry
    producer: Producer | None
    records: int
    begun_at: float
    is_recovered: bool
    is_first: bool


def write_share(brokers: Brokers, attempt: Attempt, write: Write | None, timeout_ms: int) -> Share:
    """Write a task's share of a batch with `write`, None where it has no rows, unless it is written already.

    The transaction is left open; it is aborted when `write` raises.
    """
    ledger = Ledger(brokers, attempt.query_id)
    begun_at = time.time()
    entry, is_first = ledger.enter(attempt.run_id, attempt.task, timeout_ms)
    share = Share(attempt, entry, None, 0, begun_at, is_recovered=False, is_first=is_first)
    name = ledger.transactional_id(attempt.task)
    if attempt.batch_id < entry.batch_id:
        return replace(share, is_recovered=True)
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
    """Make a batch visible: decide, then commit the transactions of all tasks.

    An error before the decision leaves nothing; after it, the batch is completed when it is run again.
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
    """Abort what the tasks have written, unless it is decided: a failure may have come after that."""
    if not shares:
        return
    attempt = shares[0].attempt
    ledger = Ledger(brokers, attempt.query_id)
    # A decision that is half written would be waited for; one that is written cannot be aborted.
    for committer in dict.fromkeys(share.entry.committer for share in shares):
        _give_up(brokers, [Transaction(ledger.name, committer)])
    if ledger.read().batch_id < attempt.batch_id:
        open_ones = [each for each in shares if each.producer and not each.is_recovered]
        _give_up(brokers, [_transaction(ledger, each) for each in open_ones])


def _agreed(ledger: Ledger, shares: Sequence[Share]) -> Entry:
    """Return what the tasks have found in the ledger; ApiError where they are not of one run.

    Tasks of one run that come late, or together, may have taken the ledger over one after the other: what each has
    found then differs in nothing but the committer, and the last of them counts.
    """
    entry = shares[0].entry
    found = [share.entry for share in shares if share.entry != entry]
    if not found:
        return entry
    latest = ledger.read(require_stable=False)
    if any(replace(each, committer=latest.committer) != latest for each in (entry, *found)):
        raise ApiError(
            ErrorCode.PRODUCER_FENCED,
            f"Two runs of the query of {ledger.name!r} write the same batch: stop one of them.",
        )
    return latest


def _transaction(ledger: Ledger, share: Share) -> Transaction:
    assert share.producer is not None
    return Transaction(ledger.transactional_id(share.attempt.task), share.producer)


def _is_committed(brokers: Brokers, transaction: Transaction) -> bool:
    """Commit a transaction that is decided, or was committed already; False if it is lost."""
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
    """Raise unless all transactions are open and stay so for a while: the decision cannot be taken back."""
    seconds = time.time() - min((share.begun_at for share in shares), default=time.time())
    transactions = [_transaction(ledger, share) for share in shares]
    lost: list[Transaction] = []
    # Brokers before 3.0 do not tell.
    with contextlib.suppress(Unsupported):
        lost = find_lost(brokers, transactions)
    if lost or seconds * 1000 > timeout_ms / 2:
        raise ApiError(
            ErrorCode.INVALID_TXN_STATE,
            f"The batch took {seconds:.0f} s, and transactions may take {timeout_ms / 1000:g} s, which must "
            "be twice as long: take less at a time (maxOffsetsPerTrigger), or raise "
            f"kafka.transaction.timeout.ms. Aborted meanwhile: {len(lost)} of {len(shares)}.",
        )


def _complete(
    brokers: Brokers, ledger: Ledger, entry: Entry, shares: Sequence[Share]
) -> tuple[Producer | None, ...]:
    """Commit what is decided and has no task now; return the batch's transactions."""
    rest = entry.transactions[len(shares) :]
    again = [share for share in shares if not share.is_recovered]
    decided = [
        Transaction(ledger.transactional_id(task), producer)
        for task, producer in enumerate(rest, len(shares))
        if producer is not None
    ]
    lost = len(again) + sum(not _is_committed(brokers, each) for each in decided)
    is_same = len(shares) == len(entry.transactions) and all(each.producer for each in again)
    if lost and not is_same:
        raise ApiError(
            ErrorCode.INVALID_TXN_STATE,
            f"Batch {entry.batch_id} was decided with {len(entry.transactions)} tasks, {lost} of their "
            f"transactions have timed out since, and the batch has {len(shares)} tasks now, which are "
            "not the same: start the query with the settings of before.",
        )
    return (*(share.producer for share in shares), *rest)


def _give_up(brokers: Brokers, transactions: Sequence[Transaction]) -> None:
    """Abort; what cannot be reached is aborted by whoever begins it anew, or by its time-out."""
    with contextlib.suppress(OttlaError):
        for transaction in transactions:
            transaction.abort(brokers)


def _sweep(
    brokers: Brokers, ledger: Ledger, known: Sequence[Producer | None], timeout_ms: int
) -> None:
    """Abort what earlier runs left open under the names of tasks that the batch does not have."""
    names = {ledger.transactional_id(task) for task, each in enumerate(known) if each is not None}
    with contextlib.suppress(OttlaError):
        for name in list_open(brokers, f"{ledger.name}-"):
            if name not in names:
                transaction = begin(brokers, name, timeout_ms)
                transaction.abort(brokers)
