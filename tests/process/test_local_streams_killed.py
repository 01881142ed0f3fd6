"""Programs that run a topology are killed: exactly once, each record counts once, in order."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.client.admin.groups import describe_group
from ottla.client.brokers import Brokers
from ottla.testing import Cluster
from tests.integration.streams.local.rebalancing import committed_counts
from tests.process.broker_cluster import wait

_PARTITIONS, _KEYS, _RECORDS, _KILLS = 4, 20, 8_000, 3
_EACH_ONCE = list(range(1, _RECORDS // _KEYS + 1))
_WAIT_S = 90.0
_PROGRAM = """
import sys
from ottla.streams import KafkaStreams, Serdes, StreamsBuilder
builder = StreamsBuilder()
counts = builder.stream("words").group_by_key().count(materialized="counts")
counts.map_values(str).to_stream().to("out")
with KafkaStreams(
    builder.build(), application_id="app", bootstrap_servers=sys.argv[1], engine="local",
    processing_guarantee="exactly_once_v2", default_key_serde=Serdes.string(),
    default_value_serde=Serdes.string(), commit_interval_ms=50, heartbeat_interval_ms=100,
    session_timeout_ms=1000, shows_progress=False,
) as app:
    app.await_running()
    print("running", flush=True)
    app.await_termination()
"""


@pytest.fixture
def ottla_options() -> dict[str, str]:
    """Sessions of a second, and transactions that end soon after their time-out."""
    return {
        "group.min.session.timeout.ms": "500",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    }


class Program:
    """A process that runs the topology."""

    def __init__(self, bootstrap: str, log: Path) -> None:
        self._log = log
        self._errors = log.open("w")
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, bootstrap],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def await_running(self) -> None:
        """Wait until it processes records."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == "running\n", self._log.read_text()

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self._process.pid, number)

    def end(self, number: signal.Signals) -> None:
        """Send a signal and wait for the end."""
        os.kill(self._process.pid, number)
        self._process.wait(_WAIT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()


def _await_members(bootstrap: str, count: int) -> None:
    with Brokers(bootstrap) as brokers:
        wait(lambda: len(describe_group(brokers, "app").members) == count, f"{count} members")


def _produce(bootstrap: str, is_over: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for number in range(_RECORDS):
        producer.produce("words", b"x", f"k{number % _KEYS}")
        if number % 50 == 0 and not is_over.is_set():
            producer.flush(_WAIT_S)
            is_over.wait(0.05)
    assert producer.flush(_WAIT_S) == 0


@contextmanager
def _two_programs(cluster: Cluster, folder: Path) -> Iterator[list[Program]]:
    """Two programs that run, while records arrive until the end of the block."""
    cluster.create_topic("words", partitions=_PARTITIONS)
    cluster.create_topic("out", partitions=_PARTITIONS)
    is_over = threading.Event()
    load = threading.Thread(target=_produce, args=(cluster.bootstrap, is_over))
    programs = [Program(cluster.bootstrap, folder / f"{number}.err") for number in range(2)]
    for program in programs:
        program.await_running()
    load.start()
    try:
        yield programs
    finally:
        is_over.set()
        load.join()


def _final_counts(bootstrap: str, programs: list[Program]) -> list[list[int]]:
    """Return the committed counts of each key, and end the programs."""
    results = committed_counts(bootstrap, "out", _RECORDS)
    for program in programs:
        program.end(signal.SIGTERM)
    return list(results.values())


def test_killed_programs_lose_and_repeat_no_result(ottla_cluster: Cluster, tmp_path: Path) -> None:
    """One of two programs is killed and started again, three times, while records arrive."""
    bootstrap = ottla_cluster.bootstrap
    with _two_programs(ottla_cluster, tmp_path) as programs:
        for number in range(_KILLS):
            programs.pop(0).end(signal.SIGKILL)
            programs.append(Program(bootstrap, tmp_path / f"again{number}.err"))
            programs[-1].await_running()
    assert _final_counts(bootstrap, programs) == [_EACH_ONCE] * _KEYS


def test_a_program_that_was_paused_writes_nothing_of_the_tasks_that_it_has_lost(
    ottla_cluster: Cluster, tmp_path: Path
) -> None:
    """Its session and its transaction end while it is stopped; afterwards it takes part again."""
    bootstrap = ottla_cluster.bootstrap
    with _two_programs(ottla_cluster, tmp_path) as programs:
        for program in programs:
            program.send(signal.SIGSTOP)
            _await_members(bootstrap, 1)
            program.send(signal.SIGCONT)
            _await_members(bootstrap, 2)
    assert _final_counts(bootstrap, programs) == [_EACH_ONCE] * _KEYS
    # Neither program has failed: the paused one has joined again.
    errors = [(tmp_path / f"{number}.err").read_text() for number in range(2)]
    assert all("Traceback" not in text for text in errors), errors
