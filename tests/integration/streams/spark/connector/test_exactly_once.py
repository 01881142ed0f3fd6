"""The protocol of the transactional sink on a real broker: repeated batches and crashes.

A query of these tests behaves like Spark: tasks leave their shares, and a driver commits them. A
log lists the committed batches, which are not run again.
"""

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client import connection, pipelined
from ottla.client.admin.offsets import LATEST, READ_COMMITTED, list_offsets
from ottla.client.arrow_table import read_table
from ottla.client.brokers import Brokers
from ottla.client.sender import ColumnSender
from ottla.client.transaction import ProducerIdAndEpoch, Transaction, begin, list_open
from ottla.streams.spark.connector import ledger as ledger_module
from ottla.streams.spark.connector.exactly_once import (
    Attempt,
    Share,
    Write,
    abort_shares,
    commit_shares,
    write_share,
)
from ottla.streams.spark.connector.ledger import Ledger, LedgerEntry
from ottla.testing.cluster import Cluster
from ottla.wire.records.columnar_encoding import Rows

TIMEOUT_MS = 60_000


class _Killed(BaseException):
    """The process was killed: the code under test neither catches this nor cleans up."""


class _Reaper:
    """Kill the sender of request number `deadly`; after it, no request of that run is sent."""

    def __init__(self) -> None:
        self.deadly: int | None = None
        self.requests = 0

    def arm(self, deadly: int | None) -> None:
        """Restart the count at 0."""
        self.deadly, self.requests = deadly, 0

    def watch(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper of `call` that counts and kills."""

        def watched(*words: Any, **named: Any) -> Any:
            if self.deadly is not None and self.requests >= self.deadly:
                raise _Killed
            self.requests += 1
            return call(*words, **named)

        return watched


@pytest.fixture
def reaper(monkeypatch: pytest.MonkeyPatch) -> _Reaper:
    """A reaper that is not armed."""
    killer = _Reaper()
    monkeypatch.setattr(connection.Connection, "start", killer.watch(connection.Connection.start))
    monkeypatch.setattr(
        pipelined.PipelinedConnection, "send", killer.watch(pipelined.PipelinedConnection.send)
    )
    return killer


@pytest.fixture
def brokers(ottla_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Brokers]:
    """A client of a cluster with topic `t` of two partitions; takeovers do not wait."""
    monkeypatch.setattr(ledger_module, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(ledger_module, "_PATIENCE_S_MAX", 0.0)
    ottla_cluster.create_topic("t", partitions=2)
    with ottla_cluster.admin() as brokers:
        yield brokers


def _writer(brokers: Brokers, *values: str) -> Write:
    times = np.full(len(values), time.time_ns() // 1_000_000)
    rows = Rows(pa.array([value.encode() for value in values], pa.binary()), None, None, times)

    def write(transaction: Transaction) -> int:
        with ColumnSender(brokers, transaction=transaction) as sender:
            for partition in (0, 1):
                sender.send("t", partition, rows)
            sender.flush()
            return sender.records_sent

    return write


class _Query:
    """A query of Spark, which is restarted after each crash."""

    _runs = itertools.count()

    def __init__(self, bootstrap: str, name: str, tasks: int = 2) -> None:
        self.bootstrap = bootstrap
        self.name = name
        self.tasks = tasks
        self.committed = -1
        self.run_id = ""
        self.restart()

    def restart(self) -> None:
        """Begin another run."""
        self.run_id = f"run-{next(self._runs)}"

    def attempt(self, task: int) -> Attempt:
        """Return the attempt of a task in the next batch."""
        return Attempt(self.name, self.run_id, self.committed + 1, task)

    def values(self, task: int) -> list[str]:
        """Return the values that a task writes, which are the same in each run."""
        return [f"{self.name}/{self.committed + 1}/{task}/{number}" for number in range(3)]

    def shares(self) -> list[Share]:
        """Run the tasks of the next batch."""
        values = []
        for task in range(self.tasks):
            with Brokers(self.bootstrap) as brokers:
                write = _writer(brokers, *self.values(task))
                values.append(write_share(brokers, self.attempt(task), write, TIMEOUT_MS))
        return values

    def commit(self, shares: Sequence[Share]) -> None:
        """Commit the batch."""
        with Brokers(self.bootstrap) as brokers:
            commit_shares(brokers, shares, TIMEOUT_MS)
        self.committed += 1

    def run(self) -> None:
        """Run and commit the next batch."""
        self.commit(self.shares())


def _counts(brokers: Brokers) -> Counter[str]:
    """Count each value for readers of committed records, when no transaction is open."""
    assert list_open(brokers, "") == []
    ends = dict.fromkeys([("t", 0), ("t", 1)], LATEST)
    while list_offsets(brokers, ends, isolation_level=READ_COMMITTED) != list_offsets(
        brokers, ends
    ):
        continue
    table = read_table(
        "t", bootstrap=brokers.bootstrap, isolation="read_committed", columns=["value"]
    )
    return Counter(row["value"].decode() for row in table.to_pylist())


def _once(*queries: _Query) -> Counter[str]:
    """Return everything that the queries have committed, once in each partition."""
    return Counter(
        {
            f"{query.name}/{batch}/{task}/{number}": 2
            for query in queries
            for batch in range(query.committed + 1)
            for task in range(query.tasks)
            for number in range(3)
        }
    )


def test_batches_are_written_once(brokers: Brokers) -> None:
    """Runs can restart, and a batch that is run again after its commit is recognized."""
    query = _Query(brokers.bootstrap, "q")
    query.run()
    query.run()
    query.restart()
    query.run()
    # The checkpoint does not contain the committed batch.
    for _ in range(2):
        query.committed -= 1
        query.restart()
        query.run()
    assert _counts(brokers) == _once(query)
    assert query.committed == 2


def test_a_checkpoint_that_is_older_than_the_ledger_is_refused(brokers: Brokers) -> None:
    """Spark repeats only its last batch: an earlier number is one of other rows, which are new."""
    query = _Query(brokers.bootstrap, "q")
    query.run()
    query.run()
    query.committed -= 2
    query.restart()
    with pytest.raises(ApiError, match="the checkpoint is older than the target"):
        query.run()


def test_nothing_is_visible_before_all_tasks_have_written(brokers: Brokers) -> None:
    """Uncommitted shares are aborted by the driver or by the next attempt."""
    query = _Query(brokers.bootstrap, "q")
    shares = query.shares()
    abort_shares(brokers, shares)
    assert list_open(brokers, "") == []
    query.shares()
    query.restart()
    assert len(list_open(brokers, "ottla-sink-q-")) == 2
    query.run()
    assert _counts(brokers) == _once(query)


def test_open_transactions_of_removed_tasks_are_aborted(brokers: Brokers) -> None:
    """Otherwise readers would wait until the transaction timeout."""
    query = _Query(brokers.bootstrap, "q", tasks=3)
    query.shares()
    query.restart()
    query.tasks = 1
    query.run()
    assert _counts(brokers) == _once(query)


def test_a_failed_task_leaves_no_open_transaction(brokers: Brokers) -> None:
    """Spark runs the task again, or the query ends."""

    def fail(transaction: Transaction) -> int:
        _writer(brokers, "half")(transaction)
        raise ConfigError("no such partition")

    query = _Query(brokers.bootstrap, "q")
    with pytest.raises(ConfigError):
        write_share(brokers, query.attempt(0), fail, TIMEOUT_MS)
    assert _counts(brokers) == Counter()


def test_tasks_without_rows_need_no_transaction(brokers: Brokers) -> None:
    """A batch without rows is not written to the ledger."""
    query = _Query(brokers.bootstrap, "q")
    empty = write_share(brokers, query.attempt(0), None, TIMEOUT_MS)
    assert empty.producer is None
    query.commit([empty])
    query.commit([])
    assert Ledger(brokers, "q").read().batch_id == -1
    full = write_share(brokers, query.attempt(1), _writer(brokers, *query.values(1)), TIMEOUT_MS)
    query.commit([write_share(brokers, query.attempt(0), None, TIMEOUT_MS), full])
    query.committed -= 1
    query.run()
    assert set(_counts(brokers)) == {f"q/2/1/{number}" for number in range(3)}


@pytest.mark.slow
def test_a_crash_at_any_request_loses_and_duplicates_nothing(
    ottla_cluster: Cluster, brokers: Brokers, reaper: _Reaper
) -> None:
    """The crash is at each request of a batch in turn: in tasks, in the decision, in the commit."""
    queries = []
    for deadly in itertools.count():
        query = _Query(ottla_cluster.bootstrap, f"q{deadly}")
        queries.append(query)
        query.run()
        query.restart()
        reaper.arm(deadly)
        try:
            query.run()
        except _Killed:
            reaper.arm(None)
            query.restart()
            query.run()
        else:
            break
    reaper.arm(None)
    assert len(queries) > 30
    assert _counts(brokers) == _once(*queries)


@pytest.mark.slow
def test_repeated_crashes_during_recovery_lose_and_duplicate_nothing(
    ottla_cluster: Cluster, brokers: Brokers, reaper: _Reaper
) -> None:
    """Three crashes at random requests follow one another."""
    chance = random.Random(11)
    queries = []
    for number in range(25):
        query = _Query(ottla_cluster.bootstrap, f"q{number}", tasks=3)
        queries.append(query)
        for _ in range(3):
            reaper.arm(chance.randrange(60))
            try:
                query.run()
            except _Killed:
                query.restart()
        reaper.arm(None)
        query.restart()
        query.run()
    assert _counts(brokers) == _once(*queries)


def _decide(brokers: Brokers, query: _Query) -> list[Share]:
    """Simulate a driver that crashes right after its decision."""
    shares = query.shares()
    producers = tuple(share.producer for share in shares)
    entry = LedgerEntry(query.run_id, shares[0].entry.committer, query.committed + 1, producers)
    Ledger(brokers, query.name).write(entry)
    query.restart()
    return shares


def test_a_decided_batch_is_committed_by_the_next_tasks(brokers: Brokers) -> None:
    """The number of tasks may be smaller or larger than before."""
    queries = [_Query(brokers.bootstrap, f"q{tasks}", tasks) for tasks in (1, 2, 3)]
    for query, follow in zip(queries, (2, 2, 1), strict=True):
        tasks = query.tasks
        _decide(brokers, query)
        query.tasks = follow
        query.run()
        query.tasks = tasks
    assert _counts(brokers) == _once(*queries)


def test_a_decided_transaction_that_timed_out_is_written_again(brokers: Brokers) -> None:
    """Only the same task can write it again; with other tasks the error says so."""
    query = _Query(brokers.bootstrap, "q")
    _decide(brokers, query)
    # This is the coordinator's action after the timeout.
    begin(brokers, "ottla-sink-q-1", TIMEOUT_MS)
    query.tasks = 3
    with pytest.raises(ApiError, match="previous settings") as caught:
        query.run()
    assert caught.value.code is ErrorCode.INVALID_TXN_STATE
    query.tasks = 2
    query.restart()
    query.run()
    assert list_open(brokers, "ottla-sink-q-2") == []
    assert _counts(brokers) == _once(query)


def test_an_earlier_run_cannot_commit(brokers: Brokers) -> None:
    """A driver that was presumed dead cannot commit a batch that the next one writes again."""
    query = _Query(brokers.bootstrap, "q")
    zombies = query.shares()
    query.restart()
    shares = query.shares()
    with pytest.raises(ApiError):
        query.commit(zombies)
    query.commit(shares)
    with pytest.raises(ApiError):
        query.commit(zombies)
    assert _counts(brokers) == _once(query)


def test_an_earlier_run_cannot_take_over(brokers: Brokers) -> None:
    """Otherwise two runs could fence each other for ever."""
    query = _Query(brokers.bootstrap, "q")
    query.run()
    earlier = query.attempt(0)
    query.restart()
    shares = query.shares()
    with pytest.raises(ApiError, match="has taken over: this one stops") as caught:
        write_share(brokers, earlier, _writer(brokers, "zombie"), TIMEOUT_MS)
    assert caught.value.code is ErrorCode.PRODUCER_FENCED
    query.commit(shares)
    assert _counts(brokers) == _once(query)


@pytest.mark.parametrize("is_committed", [True, False])
def test_all_tasks_of_a_run_may_take_over_the_ledger(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    """On a busy machine they do so concurrently; they are one run, whose batch counts once."""
    query = _Query(brokers.bootstrap, "q", tasks=3)
    with monkeypatch.context() as busy:
        busy.setattr(Ledger, "_is_taken_over", lambda *_: False)
        shares = query.shares()
    assert len({share.entry.committer for share in shares}) == 3
    assert all(not share.entry.earlier for share in shares)
    if is_committed:
        query.commit(shares)
    else:
        abort_shares(brokers, shares)
    query.run()
    assert _counts(brokers) == _once(query)


def test_two_runs_in_one_batch_are_rejected(brokers: Brokers) -> None:
    """The error says that one of them must be stopped."""
    query = _Query(brokers.bootstrap, "q")
    first = query.shares()
    query.restart()
    second = query.shares()
    with pytest.raises(ApiError, match="stop one of them"):
        query.commit([first[0], second[1]])
    query.commit(second)
    assert _counts(brokers) == _once(query)


def test_aborted_transactions_are_not_decided(brokers: Brokers) -> None:
    """The error names the setting to change."""
    query = _Query(brokers.bootstrap, "q")
    shares = query.shares()
    begin(brokers, "ottla-sink-q-0", TIMEOUT_MS)
    with pytest.raises(ApiError, match=r"raise kafka\.transaction\.timeout\.ms.* 1 of 2"):
        query.commit(shares)
    query.run()
    late = [replace(share, begun_at=share.begun_at - 40) for share in query.shares()]
    with pytest.raises(ApiError, match="maxOffsetsPerTrigger"):
        query.commit(late)
    query.run()
    assert _counts(brokers) == _once(query)


def test_the_ledger_has_room_for_hundreds_of_tasks() -> None:
    """The limit is the broker's size of offset metadata; more tasks are rejected with a fix."""
    entry = LedgerEntry(
        "r" * 36,
        ProducerIdAndEpoch(1, 2),
        7,
        tuple(ProducerIdAndEpoch(5000 + n, 3) for n in range(900)),
    )
    for each in (
        LedgerEntry(),
        entry,
        LedgerEntry("r", ProducerIdAndEpoch(1, 0), 3, (None, ProducerIdAndEpoch(4, 5))),
        entry.taken_over("s", ProducerIdAndEpoch(2, 3)).taken_over("t", ProducerIdAndEpoch(2, 4)),
    ):
        assert LedgerEntry.decode(each.batch_id, each.encode()) == each
        assert len(each.encode()) <= 4096
    chance = random.Random(1)
    many = tuple(
        ProducerIdAndEpoch(chance.randrange(1 << 40), chance.randrange(1 << 15))
        for _ in range(2000)
    )
    with pytest.raises(ConfigError, match="coalesce"):
        LedgerEntry("r", ProducerIdAndEpoch(1, 2), 7, many).encode()
