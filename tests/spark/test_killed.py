"""Exactly once while processes are killed: readers of committed records see each record once."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest

from ottla.client.brokers import Brokers
from ottla.client.sender import ColumnSender
from ottla.client.transaction import list_open
from ottla.testing.cluster import Cluster
from ottla.wire.records.columnar_encoding import Rows
from tests.process.broker_cluster import IS_CAMPAIGN
from tests.spark.copying_driver import RECORDS_PER_BATCH
from tests.spark.processes import committed, dice, driver, kill_all, reading, workers

# Three JVMs start in sequence, which alone takes a minute on a busy machine.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1200 if IS_CAMPAIGN else 300),
    pytest.mark.alone,
]

# A worker is killed before and after the driver; `make campaign` plays four such rounds.
KILLS = ("worker", "driver", "worker") * (4 if IS_CAMPAIGN else 1)
RECORDS = 4 * len(KILLS) * RECORDS_PER_BATCH
PARTITIONS = 3


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster with `numbers`, which has each of RECORDS once, and the empty topic `copied`."""
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


@pytest.mark.nightly(
    "tests/spark/test_instances.py::"
    "test_a_standby_takes_over_when_the_active_instance_is_paused_or_killed"
)
def test_nothing_is_lost_or_duplicated_while_workers_and_drivers_are_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Workers and drivers are killed at random moments; the last driver finishes the copy."""
    chance = dice()
    arguments = (cluster.bootstrap, "numbers", "copied", str(tmp_path / "checkpoint"))
    program = driver("copying_driver", tmp_path / "driver.txt", *arguments)
    with program, reading(cluster.bootstrap, "copied", PARTITIONS) as reader:
        for kind in KILLS:
            count = len(reader.seen) + chance.randint(1, 3) * RECORDS_PER_BATCH
            reader.read_until(min(count, RECORDS - 1), program.text)
            reader.read(chance.random() * 0.7)
            if kind == "worker":
                process: list[psutil.Process] = workers(program.below())
                kill_all(chance.choice(process))
            else:
                program.kill()
                program.start()
        reader.read_until(RECORDS, program.text)
    seen = committed(cluster.bootstrap, "copied", PARTITIONS)
    assert len(seen) == RECORDS
    assert set(seen.values()) == {1}
    with cluster.admin() as brokers:
        assert list_open(brokers, "ottla-sink-") == []
