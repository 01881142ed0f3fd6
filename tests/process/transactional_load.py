"""Transactions that send to and poll from several partitions, recorded for the history checkers.

Each worker is a thread with a transactional producer and a consumer that reads committed records of
partitions it has assigned itself. Values are unique. After an outcome that it does not know the
worker continues as another process, with the same transactional id.
"""

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import confluent_kafka

from ottla.testing.checkers.kafka import Partition, Status
from ottla.testing.checkers.transactions import HistoryOperation, PolledRecord, Send

_EOF = confluent_kafka.KafkaError._PARTITION_EOF
_CALL_S = 10.0
_PATIENCE_S = 90.0
_MAX_STEPS = 4
_ASSIGN_SHARE, _ABORT_SHARE = 1 / 40, 1 / 20


class Recorder:
    """The operations of all workers, in the order of their invocations."""

    def __init__(self, bootstrap: str, partitions: Sequence[Partition], *, batch: int) -> None:
        self.bootstrap = bootstrap
        self.partitions = tuple(partitions)
        self.batch = batch
        self.operations: list[HistoryOperation] = []
        self.is_stopped = threading.Event()
        # Errors that a consumer reported: none of them is expected.
        self.consumer_errors: list[str] = []
        # Errors of transactions, with their number.
        self.errors: Counter[str] = Counter()
        # Exceptions that ended a worker.
        self.failures: list[BaseException] = []
        self._values = itertools.count(1)
        self._processes = itertools.count()
        self._lock = threading.Lock()

    def new_process(self) -> int:
        """Return the number of another process."""
        with self._lock:
            return next(self._processes)

    def new_value(self) -> int:
        """Return a value that was not sent yet."""
        with self._lock:
            return next(self._values)

    def begin(
        self,
        process: int,
        assigned: Sequence[Partition] | None = None,
        status: Status | None = None,
    ) -> HistoryOperation:
        """Record the invocation of an operation."""
        now = time.monotonic_ns()
        operation = HistoryOperation(process, now, now, assigned, status=status or Status.UNKNOWN)
        with self._lock:
            self.operations.append(operation)
        return operation

    def count(self, status: Status) -> int:
        """Return how many transactions had this outcome."""
        operations = self.operations[:]
        return sum(item.status is status and item.assigned is None for item in operations)

    def size(self) -> int:
        """Return how many values were sent and records polled within transactions."""
        return sum(
            1 if isinstance(step, Send) else sum(map(len, step.values()))
            for operation in self.operations
            for step in operation.steps
        )

    def consumer(self, isolation: str = "read_committed", **config: Any) -> Any:
        """Return a consumer that assigns itself partitions."""
        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "transactions",
                "enable.auto.commit": False,
                # The records of a partition never begin after offset 0.
                "auto.offset.reset": "error",
                "isolation.level": isolation,
                "fetch.wait.max.ms": 50,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
                **config,
            }
        )

    def read_all(self) -> int:
        """Wait until no transaction is open, read every partition, and return the process."""
        ends = self._stable_ends()
        process = self.new_process()
        self.begin(process, self.partitions, Status.OK)
        consumer = self.consumer(**{"enable.partition.eof": True})
        consumer.assign([_position(partition, 0) for partition in self.partitions])
        left = {partition for partition in self.partitions if ends[partition]}
        deadline = time.monotonic() + _PATIENCE_S
        while left:
            assert time.monotonic() < deadline, f"{sorted(left)} cannot be read to their ends"
            operation = self.begin(process)
            records: dict[Partition, list[PolledRecord]] = {}
            for message in consumer.consume(2000, timeout=1.0):
                partition = (message.topic(), message.partition())
                error = message.error()
                if error is None:
                    record = PolledRecord(message.offset(), int(message.value()))
                    records.setdefault(partition, []).append(record)
                elif error.code() == _EOF:
                    left.discard(partition)
                else:
                    self.consumer_errors.append(str(error))
            operation.steps.append(records)
            operation.completed, operation.status = time.monotonic_ns(), Status.OK
        consumer.close()
        return process

    def _stable_ends(self) -> dict[Partition, int]:
        """Return the end of each partition when its last stable offset has reached it."""
        views = [self.consumer(level) for level in ("read_committed", "read_uncommitted")]
        ends: dict[Partition, int] = {}
        deadline = time.monotonic() + _PATIENCE_S
        pause = threading.Event()
        for partition in self.partitions:
            while True:
                assert time.monotonic() < deadline, f"a transaction of {partition} hangs"
                with suppress(confluent_kafka.KafkaException):
                    stable, end = (
                        view.get_watermark_offsets(_position(partition), timeout=_CALL_S)[1]
                        for view in views
                    )
                    if stable == end:
                        ends[partition] = end
                        break
                pause.wait(0.1)
        for view in views:
            view.close()
        return ends


class Worker:
    """One transactional producer and one consumer in a thread."""

    def __init__(self, recorder: Recorder, number: int, seed: int) -> None:
        self._recorder = recorder
        self._random = random.Random(seed * 1000 + number)
        self._positions = dict.fromkeys(recorder.partitions, 0)
        self._assigned: list[Partition] = []
        self._transactional_id = f"worker-{number}"
        self._process = -1
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            while not self._recorder.is_stopped.is_set():
                self._live()
            # What is in doubt is completed or aborted.
            self._new_producer()
        except BaseException as error:
            self._recorder.failures.append(error)
            raise

    def _new_producer(self) -> Any:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self._recorder.bootstrap,
                "transactional.id": self._transactional_id,
                "transaction.timeout.ms": 60_000,
                "linger.ms": 2,
                "reconnect.backoff.max.ms": 500,
                "socket.timeout.ms": 10_000,
                "log_level": 0,
            }
        )
        _repeat(lambda: producer.init_transactions(_CALL_S))
        return producer

    def _live(self) -> None:
        """Run operations as one process, until the outcome of one is unknown or the load ends."""
        self._process = self._recorder.new_process()
        producer, consumer = self._new_producer(), self._recorder.consumer()
        self._assigned = []
        while not self._recorder.is_stopped.is_set():
            if not self._assigned or self._random.random() < _ASSIGN_SHARE:
                self._assign(consumer)
            operation = self._transact(producer, consumer)
            if operation.status is Status.UNKNOWN:
                break
        consumer.close()

    def _assign(self, consumer: Any) -> None:
        count = max(1, len(self._recorder.partitions) // 2)
        self._assigned = self._random.sample(self._recorder.partitions, count)
        self._recorder.begin(self._process, self._assigned, Status.OK)
        self._rewind(consumer)

    def _rewind(self, consumer: Any) -> None:
        """Continue after the last record that a committed transaction has polled."""
        positions = [_position(item, self._positions[item]) for item in self._assigned]
        consumer.assign(positions)

    def _transact(self, producer: Any, consumer: Any) -> HistoryOperation:
        operation = self._recorder.begin(self._process)
        try:
            producer.begin_transaction()
            for _ in range(self._random.randint(1, _MAX_STEPS)):
                if self._random.random() < 0.5:
                    self._send(producer, operation)
                else:
                    self._poll(consumer, operation)
            if self._random.random() < _ABORT_SHARE:
                # librdkafka fails with INVALID_TXN_STATE if it aborts while it adds the partitions,
                # with Apache Kafka, too; and only records that were written can be read by mistake.
                producer.flush(_CALL_S)
                status = self._abort(producer)
            else:
                _repeat(lambda: producer.commit_transaction(_CALL_S))
                status = Status.OK
        except confluent_kafka.KafkaException as error:
            status = Status.UNKNOWN
            self._recorder.errors[f"transaction: {error.args[0].name()}"] += 1
            if error.args[0].txn_requires_abort():
                status = self._abort(producer)
        # Delivery reports that are still queued; a fatal error may be reported again.
        with suppress(confluent_kafka.KafkaException):
            producer.poll(0)
        operation.completed, operation.status = time.monotonic_ns(), status
        if status is Status.OK:
            for partition, record in operation.records():
                self._positions[partition] = record.offset + 1
        elif status is Status.FAILED:
            self._rewind(consumer)
        return operation

    def _abort(self, producer: Any) -> Status:
        try:
            _repeat(lambda: producer.abort_transaction(_CALL_S))
        except confluent_kafka.KafkaException as error:
            self._recorder.errors[f"abort: {error.args[0].name()}"] += 1
            return Status.UNKNOWN
        return Status.FAILED

    def _send(self, producer: Any, operation: HistoryOperation) -> None:
        topic, number = self._random.choice(self._recorder.partitions)
        for _ in range(self._recorder.batch):
            value = self._recorder.new_value()
            index = len(operation.steps)
            operation.steps.append(Send((topic, number), value))
            producer.produce(
                topic,
                b"%d" % value,
                partition=number,
                on_delivery=partial(_delivered, operation, index),
            )

    def _poll(self, consumer: Any, operation: HistoryOperation) -> None:
        records: dict[Partition, list[PolledRecord]] = {}
        for message in consumer.consume(500, timeout=0.02):
            if message.error() is not None:
                self._recorder.consumer_errors.append(str(message.error()))
                continue
            record = PolledRecord(message.offset(), int(message.value()))
            records.setdefault((message.topic(), message.partition()), []).append(record)
        operation.steps.append(records)


def _position(partition: Partition, offset: int = -1001) -> Any:
    return confluent_kafka.TopicPartition(*partition, offset)


def _delivered(operation: HistoryOperation, index: int, error: Any, message: Any) -> None:
    step = operation.steps[index]
    # The offset is unknown if the broker recognized a duplicate of an old batch (KIP-98).
    if error is None and isinstance(step, Send) and message.offset() is not None:
        operation.steps[index] = step._replace(offset=message.offset())


def _repeat(call: Callable[[], object]) -> None:
    """Repeat a call while its error is retriable."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            call()
        except confluent_kafka.KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise
        else:
            return


@contextmanager
def transactions(
    bootstrap: str, partitions: Sequence[Partition], *, workers: int, batch: int, seed: int
) -> Iterator[Recorder]:
    """Run workers until the end of the block."""
    recorder = Recorder(bootstrap, partitions, batch=batch)
    running = [Worker(recorder, number, seed) for number in range(workers)]
    for worker in running:
        worker.thread.start()
    try:
        yield recorder
    finally:
        recorder.is_stopped.set()
        for worker in running:
            worker.thread.join(2 * _PATIENCE_S)
    assert not any(worker.thread.is_alive() for worker in running), "a worker hangs"
    assert not recorder.failures, recorder.failures
