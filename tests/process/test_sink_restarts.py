"""The transactional sink while its broker is killed and stopped at random: each batch is written
once.
"""

import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ottla.client.admin.topics import create_topic
from ottla.client.arrow_table import read_table
from ottla.client.brokers import Brokers
from ottla.client.fetcher import Fetcher
from ottla.client.sender import ColumnSender
from ottla.client.transaction import Transaction
from ottla.streams.spark.connector.exactly_once import Attempt, Write, commit_shares, write_share
from ottla.streams.spark.connector.options import SparkOptions, Use
from ottla.streams.spark.connector.positions import Positions
from ottla.testing.process import BrokerProcess
from ottla.wire.records.columnar import ColumnDecoder
from ottla.wire.records.columnar_encoding import Rows
from tests.process.broker_cluster import IS_CAMPAIGN

pytestmark = [pytest.mark.slow, pytest.mark.alone]

# How often the broker is killed, and how often it is stopped.
RESTARTS = 4 if IS_CAMPAIGN else 2
TASKS = 2
PARTITIONS = (0, 1)
RECORDS = 3
_TIMEOUT_MS = 60_000
_PATIENCE_S = 100.0


def _rows(values: list[bytes]) -> Rows:
    times = np.full(len(values), time.time_ns() // 1_000_000)
    return Rows(pa.array(values, pa.binary()), None, None, times)


class _Query:
    """The calls of a Spark query, without Spark: plans, reads, writes and commits one batch after
    the other.
    """

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.stopping = threading.Event()
        self._done = threading.Semaphore(0)
        options = {"bootstrap": bootstrap, "subscribe": "source"}
        self._positions = Positions(SparkOptions(options, Use.STREAM_READ))

    def run(self) -> int:
        """Run until stopped; return the number of batches."""
        batch = 0
        with self._positions:
            while not self.stopping.is_set():
                self._positions.latest(self._positions.partitions())
                attempts = [Attempt("query", "run", batch, task) for task in range(TASKS)]
                shares = []
                for attempt in attempts:
                    with self._brokers() as brokers:
                        self._read(brokers)
                        write = self._writer(brokers, attempt)
                        shares.append(write_share(brokers, attempt, write, _TIMEOUT_MS))
                with self._brokers() as brokers:
                    commit_shares(brokers, shares, _TIMEOUT_MS)
                batch += 1
                self._done.release()
        return batch

    def await_batch(self, running: Future[int]) -> None:
        """Wait for the end of a batch; raise the error of the query if it failed."""
        deadline = time.monotonic() + _PATIENCE_S
        while not self._done.acquire(timeout=0.1):
            assert time.monotonic() < deadline
            if running.done():
                running.result()
        # Batches that are done already do not count.
        while self._done.acquire(blocking=False):
            continue

    def _brokers(self) -> Brokers:
        return Brokers(self.bootstrap, timeout_s=60.0, is_proven=True)

    def _read(self, brokers: Brokers) -> None:
        with Fetcher(brokers) as fetcher:
            batches = fetcher.fetch(ColumnDecoder("source", 0, ["value"]), 0, RECORDS)
            assert sum(batch.num_rows for batch in batches) == RECORDS

    def _writer(self, brokers: Brokers, attempt: Attempt) -> Write:
        def write(transaction: Transaction) -> int:
            with ColumnSender(brokers, transaction=transaction) as sender:
                for partition in PARTITIONS:
                    sender.send("target", partition, _rows(_values(attempt.batch_id, attempt.task)))
                sender.flush()
                return sender.records_sent

        return write


def _values(batch: int, task: int) -> list[bytes]:
    return [b"%d/%d/%d" % (batch, task, number) for number in range(RECORDS)]


def test_query_continues_while_its_broker_is_killed_and_stopped(tmp_path: Path) -> None:
    """The query never fails, and `read_committed` consumers find the records of each batch once."""
    seed = int(os.environ.get("OTTLA_SEED") or random.SystemRandom().getrandbits(32))
    print(f"OTTLA_SEED={seed}")
    chance = random.Random(seed)
    with BrokerProcess(tmp_path / "broker") as broker, ThreadPoolExecutor(1) as pool:
        with Brokers(broker.bootstrap) as brokers:
            create_topic(brokers, "source")
            create_topic(brokers, "target", partitions=len(PARTITIONS))
            with ColumnSender(brokers) as sender:
                sender.send("source", 0, _rows([b"x"] * RECORDS))
                sender.flush()
        query = _Query(broker.bootstrap)
        running: Future[int] = pool.submit(query.run)
        try:
            ends = [broker.kill, broker.stop] * RESTARTS
            chance.shuffle(ends)
            for end in ends:
                query.await_batch(running)
                # At a random moment within the next batches.
                query.stopping.wait(chance.random() / 2)
                end()
                broker.start()
        finally:
            query.stopping.set()
        batches = running.result(_PATIENCE_S)
        table = read_table(
            "target", bootstrap=broker.bootstrap, columns=["value"], isolation="read_committed"
        )
    expected = Counter(
        {
            value: len(PARTITIONS)
            for batch in range(batches)
            for task in range(TASKS)
            for value in _values(batch, task)
        }
    )
    assert Counter(table["value"].to_pylist()) == expected
