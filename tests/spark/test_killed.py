"""Exactly once while processes are killed: no record is lost, none is there twice, for a reader of committed ones."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import numpy as np
import psutil
import pyarrow as pa
import pytest

from ottla.client.brokers import Brokers
from ottla.client.sender import ColumnSender
from ottla.client.transaction import list_open
from ottla.testing.cluster import Cluster
from ottla.wire.records.columnar_encoding import Rows
from tests.spark.copying_driver import RECORDS_PER_BATCH

# Three JVMs start one after the other: on a busy machine that alone takes a minute.
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]

RECORDS = 24 * RECORDS_PER_BATCH
PARTITIONS = 3
KILLS = ("worker", "worker", "driver", "worker", "worker", "driver")
PATIENCE_S = 240.0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster with `numbers`, each of RECORDS once, and the empty topic `copied`."""
    with Cluster() as cluster:
        for topic in ("numbers", "copied"):
            cluster.create_topic(topic, partitions=PARTITIONS)
        each = RECORDS // PARTITIONS
        times = np.full(each, time.time_ns() // 1_000_000)
        with Brokers(cluster.bootstrap) as brokers, ColumnSender(brokers) as sender:
            for partition in range(PARTITIONS):
                first = partition * each
                values = [b"%d" % number for number in range(first, first + each)]
                column = pa.array(values, pa.binary())
                sender.send("numbers", partition, Rows(column, column, None, times))
            sender.flush()
        yield cluster


class _Driver:
    """The process of a driver with all below it: the JVM, Python's planners and workers."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._words = [
            *(sys.executable, "-m", "tests.spark.copying_driver"),
            *(cluster.bootstrap, "numbers", "copied", str(folder / "checkpoint")),
        ]
        self._log = folder / "driver.txt"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, with its words in a file."""
        with self._log.open("ab") as log:
            root = str(Path(__file__).parents[2])
            self._process = subprocess.Popen(
                self._words,
                stdout=log,
                stderr=log,
                cwd=root,
                env={**os.environ, "PYTHONPATH": root},
            )

    def kill(self) -> None:
        """Kill all of it, as a machine that loses power does."""
        assert self._process is not None
        # From the top: nobody is left to react to the death of those below.
        for each in [psutil.Process(self._process.pid), *self._below()]:
            _kill(each)
        self._process.wait()

    def kill_worker(self, chance: random.Random) -> bool:
        """Kill one of Python's processes below the JVM; False where there is none yet."""
        found = [each for each in self._below() if "python" in each.name()]
        if found:
            _kill(chance.choice(found))
        return bool(found)

    def words(self) -> str:
        """What it said."""
        return self._log.read_text()

    def _below(self) -> list[psutil.Process]:
        assert self._process is not None
        found: list[psutil.Process] = psutil.Process(self._process.pid).children(recursive=True)
        return found


def _kill(process: psutil.Process) -> None:
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return


@contextmanager
def _reader(cluster: Cluster) -> Iterator[confluent_kafka.Consumer]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "counting",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    places = [confluent_kafka.TopicPartition("copied", n, 0) for n in range(PARTITIONS)]
    consumer.assign(places)
    try:
        yield consumer
    finally:
        consumer.close()


def _read(consumer: confluent_kafka.Consumer, seen: Counter[bytes], timeout_s: float) -> None:
    for message in consumer.consume(10_000, timeout_s):
        assert message.error() is None
        value = message.value()
        assert value is not None
        seen[value] += 1


def test_nothing_is_lost_or_doubled_while_workers_and_drivers_are_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Workers and whole drivers die at random moments between two reads; the last driver ends the work."""
    chance = random.Random(20261121)
    driver = _Driver(cluster, tmp_path)
    seen: Counter[bytes] = Counter()
    deadline = time.monotonic() + PATIENCE_S
    driver.start()
    try:
        with _reader(cluster) as consumer:
            for kind in KILLS:
                wanted = min(len(seen) + chance.randint(1, 3) * RECORDS_PER_BATCH, RECORDS - 1)
                while len(seen) < wanted and time.monotonic() < deadline:
                    _read(consumer, seen, 0.05)
                _read(consumer, seen, chance.random() * 0.7)
                if kind == "worker":
                    assert driver.kill_worker(chance)
                else:
                    driver.kill()
                    driver.start()
            while len(seen) < RECORDS and time.monotonic() < deadline:
                _read(consumer, seen, 0.2)
            # What comes too late to be seen above would be a double.
            _read(consumer, seen, 2.0)
    finally:
        driver.kill()
    assert len(seen) == RECORDS, driver.words()[-4000:]
    assert set(seen.values()) == {1}
    with cluster.admin() as brokers:
        assert list_open(brokers, "ottla-sink-") == []
