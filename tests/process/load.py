"""An idempotent producer with acks=all at a fixed rate, and the judgement of what it has written.

Record n of a partition has the value n, so a loss, a duplicate and a change of order can each be
seen in the partition.
"""

import contextlib
import itertools
import json
import signal
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import confluent_kafka

from tests.compat import java

# Faults need records to be written all the time, not many of them.
RATE = 1000
PARTITIONS = 12
_TICK_S = 0.02
_PADDING = b" " * 1000
_PATIENCE_S = 60.0
# The first acknowledgements wait for metadata and a producer id.
_WARM = 100
_EOF = confluent_kafka.KafkaError._PARTITION_EOF

# Number of each record by partition and offset.
Content = dict[int, dict[int, int]]


class Load:
    """librdkafka; a context manager that writes in the background until the end of the block."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        partitions: int = PARTITIONS,
        rate: int = RATE,
        config: Mapping[str, object] | None = None,
    ) -> None:
        self.acknowledged: Content = defaultdict(dict)
        # Acknowledged without an offset.
        self.duplicates: dict[int, set[int]] = defaultdict(set)
        self.sent = [0] * partitions
        self.failures: list[str] = []
        self.gap_seconds = 0.0
        self._topic = topic
        self._rate = rate
        self._count = 0
        self._started_at = self._last_at = 0.0
        self._progress = threading.Condition()
        self._is_stopped = threading.Event()
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 20,
                "reconnect.backoff.max.ms": 500,
                "socket.timeout.ms": 10_000,
                "log_level": 0,
                **(config or {}),
            }
        )
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Load":
        """Start, and return after the first acknowledgements."""
        self._started_at = self._last_at = time.monotonic()
        self._thread.start()
        self.wait_for(_WARM)
        with self._progress:
            self.gap_seconds = 0.0
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop, and wait until every record is acknowledged."""
        self._is_stopped.set()
        self._thread.join()
        left = self._producer.flush(_PATIENCE_S if error is None else 0)
        if error is None:
            assert left == 0, f"{left} records are not acknowledged"

    def wait_for(self, more: int, seconds: float = _PATIENCE_S) -> None:
        """Wait until `more` further records are acknowledged."""
        with self._progress:
            goal = self._count + more
            done = self._progress.wait_for(lambda: self._count >= goal, timeout=seconds)
        assert done, f"{goal - self._count} of {more} records not acknowledged in {seconds:g} s"

    def seconds_since_start(self) -> float:
        """Return for how long records have been written."""
        return time.monotonic() - self._started_at

    def _run(self) -> None:
        started, sent = time.monotonic(), 0
        while not self._is_stopped.is_set():
            due = int((time.monotonic() - started) * self._rate)
            for number in range(sent, due):
                self._send(number % len(self.sent))
            sent = max(sent, due)
            self._producer.poll(_TICK_S)

    def _send(self, partition: int) -> None:
        value = b"%d" % self.sent[partition] + _PADDING
        try:
            self._producer.produce(
                self._topic, value, partition=partition, on_delivery=self._delivered
            )
        except BufferError:
            return
        self.sent[partition] += 1

    def _delivered(
        self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message
    ) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        offset = message.offset()
        if offset is None:
            # The broker knew the batch as a duplicate, but not its offset any more (KIP-98).
            self.duplicates[message.partition()].add(int(message.value()))
        else:
            self.acknowledged[message.partition()][offset] = int(message.value())
        now = time.monotonic()
        with self._progress:
            self.gap_seconds = max(self.gap_seconds, now - self._last_at)
            self._last_at = now
            self._count += 1
            self._progress.notify()

    def check(self, bootstrap: str) -> None:
        """Fail unless every record is in its partition once, in order, at its acknowledged offset."""
        records = read_all(bootstrap, self._topic, len(self.sent))
        assert self.failures == []
        for partition, sent in enumerate(self.sent):
            judge(partition, sent, self.acknowledged[partition], records[partition])
            unplaced = self.duplicates[partition]
            assert len(self.acknowledged[partition]) + len(unplaced) == sent
            assert unplaced <= set(records[partition].values())


class JavaLoad:
    """The Java client's VerifiableProducer: its values are 0, 1, 2… over all partitions."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        folder: Path,
        *,
        partitions: int = PARTITIONS,
        rate: int = RATE,
    ) -> None:
        self._topic = topic
        self._partitions = partitions
        config = folder / "java-load.properties"
        # The program sets no retries; a producer's own defaults are idempotent.
        config.write_text(
            "enable.idempotence=true\nretries=2147483647\nacks=all\nlinger.ms=5\n"
            "reconnect.backoff.max.ms=500\nrequest.timeout.ms=10000\nmetadata.max.age.ms=5000\n"
        )
        self._output = folder / "java-load.out"
        class_path = java.client_class_path("4.3.0")
        self._command = java.command(
            class_path,
            "org.apache.kafka.tools.VerifiableProducer",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--acks", "-1"),
            *("--throughput", str(rate), "--command-config", str(config)),
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._events: list[dict[str, Any]] = []
        self._position = 0

    def __enter__(self) -> "JavaLoad":
        """Start, and return after the first acknowledgements."""
        with self._output.open("wb") as out:
            self._process = subprocess.Popen(self._command, stdout=out, stderr=subprocess.STDOUT)
        self._started_at = time.monotonic()
        self.wait_for(_WARM)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the producer, which completes what it has sent."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            # The JVM prints its threads, which shows what the producer waits for.
            self._process.send_signal(signal.SIGQUIT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
            self._process.kill()
            self._process.wait()
            print(self._last_lines())
            raise

    @property
    def gap_seconds(self) -> float:
        """The longest time between acknowledgements, without the first ones."""
        times = [item["timestamp"] for item in self._acknowledgements()[_WARM:]]
        return max(after - before for before, after in itertools.pairwise(times)) / 1000

    def seconds_since_start(self) -> float:
        """Return for how long records have been written."""
        return time.monotonic() - self._started_at

    def _last_lines(self, count: int = 300) -> str:
        """Return the end of the program's output, without the events of acknowledged records."""
        lines = self._output.read_text().splitlines()
        return "\n".join([line for line in lines if "producer_send_success" not in line][-count:])

    def _acknowledgements(self) -> list[dict[str, Any]]:
        """Return the events of acknowledged records so far."""
        with self._output.open("rb") as file:
            file.seek(self._position)
            complete, newline, _ = file.read().rpartition(b"\n")
        self._position += len(complete + newline)
        self._events += [json.loads(line) for line in complete.splitlines() if line[:1] == b"{"]
        return [item for item in self._events if item["name"] == "producer_send_success"]

    def wait_for(self, more: int, seconds: float = _PATIENCE_S) -> None:
        """Wait until `more` further records are acknowledged."""
        pause, deadline = threading.Event(), time.monotonic() + seconds
        goal = len(self._acknowledgements()) + more
        while len(self._acknowledgements()) < goal:
            assert self._process is not None
            assert self._process.poll() is None, self._output.read_text()[-3000:]
            assert time.monotonic() < deadline, f"{more} records not written in {seconds:g} s"
            pause.wait(0.1)

    def check(self, bootstrap: str) -> None:
        """Fail unless every acknowledged record is read once and in order, and no other record
        twice.
        """
        acknowledged: Content = defaultdict(dict)
        for item in self._acknowledgements():
            acknowledged[item["partition"]][item["offset"]] = int(item["value"])
        assert [item for item in self._events if item["name"] == "producer_send_error"] == []
        assert acknowledged
        records = read_all(bootstrap, self._topic, self._partitions)
        for partition, content in enumerate(records):
            numbers = list(content.values())
            assert acknowledged[partition].items() <= content.items(), partition
            assert numbers == sorted(set(numbers)), f"partition {partition}: order or duplicates"


# The load of a client, to be called with addresses, topic, and what differs from the defaults.
Producing = Callable[..., Load | JavaLoad]


def judge(
    partition: int, sent: int, acknowledged: Mapping[int, int], entries: Mapping[int, int]
) -> None:
    """Fail if a partition has lost, duplicated or reordered acknowledged records."""
    lost = acknowledged.items() - entries.items()
    assert not lost, f"partition {partition} lost {len(lost)}, first {sorted(lost)[:3]}"
    numbers = list(entries.values())
    if numbers == list(range(sent)):
        return
    doubled = len(numbers) - len(set(numbers))
    inverted = sum(after < before for before, after in itertools.pairwise(numbers))
    missing = sorted(set(range(sent)) - set(numbers))[:5]
    raise AssertionError(
        f"partition {partition}: {doubled} duplicates, {inverted} inversions, missing {missing}, "
        f"{len(numbers)} records of {sent}"
    )


def read_all(bootstrap: str, topic: str, partitions: int) -> list[dict[int, int]]:
    """Return the number at each offset of each partition, read from the beginning to the end."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign(
        [confluent_kafka.TopicPartition(topic, partition, 0) for partition in range(partitions)]
    )
    rows: list[dict[int, int]] = [{} for _ in range(partitions)]
    ended: set[int] = set()
    deadline = time.monotonic() + _PATIENCE_S
    while len(ended) < partitions:
        assert time.monotonic() < deadline, f"{topic} cannot be read to its end"
        for message in consumer.consume(1000, timeout=1.0):
            error = message.error()
            if error is None:
                rows[message.partition()][message.offset()] = int(message.value())
            elif error.code() == _EOF:
                ended.add(message.partition())
    consumer.close()
    return rows
