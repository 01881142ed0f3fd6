"""Programs that count words with the local engine, as processes that tests can kill."""

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from ottla.testing import Cluster
from tests.integration.streams.local.rebalancing import committed_counts
from tests.process.broker_cluster import wait

PARTITIONS, KEYS, RECORDS = 4, 20, 8_000
EACH_ONCE = list(range(1, RECORDS // KEYS + 1))
"""The counts of each key if each record counts once, in order."""
SESSION_S = 1.0
WAIT_S = 90.0
BROKER_OPTIONS = {
    "group.min.session.timeout.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
"""Sessions of a second, and transactions that end soon after their time-out."""
_OPTIONS: dict[str, Any] = {
    "application_id": "app",
    "engine": "local",
    "processing_guarantee": "exactly_once_v2",
    "commit_interval_ms": 50,
    "heartbeat_interval_ms": 100,
    "session_timeout_ms": int(SESSION_S * 1000),
    "shows_progress": False,
}
_PROGRAM = """
import json, logging, sys
from ottla.streams import KafkaStreams, Serdes, StreamsBuilder
logging.basicConfig(level=logging.INFO)
builder = StreamsBuilder()
counts = builder.stream("words").group_by_key().count(materialized="counts")
counts.map_values(str).to_stream().to("out")
with KafkaStreams(
    builder.build(), bootstrap_servers=sys.argv[1], default_key_serde=Serdes.string(),
    default_value_serde=Serdes.string(), **json.loads(sys.argv[2]),
) as app:
    app.await_running()
    print("running", flush=True)
    app.await_termination()
"""


class Program:
    """A process that runs the topology; `options` are of KafkaStreams."""

    def __init__(self, bootstrap: str, log: Path, **options: Any) -> None:
        self._log = log
        self._errors = log.open("w")
        arguments = json.dumps({**_OPTIONS, **options})
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, bootstrap, arguments],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def await_running(self) -> None:
        """Wait until it processes records."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == "running\n", self.log()

    def log(self) -> str:
        """Return its log."""
        return self._log.read_text()

    def restores(self) -> list[int]:
        """Return the number of records that each restore of a task has read, in order."""
        return [int(count) for count in re.findall(r"restored records: (\d+)", self.log())]

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def end(self, number: signal.Signals) -> None:
        """Send a signal and wait for the end; a program may have ended already."""
        self._process.send_signal(number)
        self._process.wait(WAIT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()


class Programs:
    """Starts programs of one cluster, which gets their topics, and ends all of them."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        for topic in ("words", "out"):
            cluster.create_topic(topic, partitions=PARTITIONS)
        self.bootstrap = cluster.bootstrap
        self._folder = folder
        self._programs: list[Program] = []

    def start(self, **options: Any) -> Program:
        """Start a program; by default all of them share a state_dir."""
        log = self._folder / f"{len(self._programs)}.err"
        options = {"state_dir": str(self._folder / "state"), **options}
        self._programs.append(Program(self.bootstrap, log, **options))
        return self._programs[-1]

    def counts(self) -> list[list[int]]:
        """Return the committed counts of each key, when all records have been counted."""
        return list(committed_counts(self.bootstrap, "out", RECORDS).values())

    def __enter__(self) -> "Programs":
        """Start no program yet."""
        return self

    def __exit__(self, *error: object) -> None:
        """Kill the programs that run."""
        for program in self._programs:
            program.end(signal.SIGKILL)


class WordLoad:
    """Records for the topology, in the background until the end of a block, then at once."""

    def __init__(self, bootstrap: str, records: int = RECORDS) -> None:
        self._bootstrap, self._records = bootstrap, records
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._produce)

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "partitioner": "murmur2_random"})
        for number in range(self._records):
            producer.produce("words", b"x", f"k{number % KEYS}")
            if number % 50 == 0 and not self._is_over.is_set():
                producer.flush(WAIT_S)
                self._is_over.wait(0.05)
        assert producer.flush(WAIT_S) == 0

    def __enter__(self) -> "WordLoad":
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Produce the rest, and wait for it."""
        self._is_over.set()
        self._thread.join()


def await_restores(program: Program, count: int) -> None:
    """Wait until a program has restored this number of tasks."""
    wait(lambda: len(program.restores()) >= count, f"{count} restored tasks", WAIT_S)
