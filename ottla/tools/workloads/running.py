"""Runs a plan: a thread for each producer and consumer, and the faults at their times.

A consumer checks that it reads every acknowledged record of its topic. A record that was not
acknowledged may be missing or not.
"""

import logging
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError
from ottla.base.loading import deferred
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.client.consumer.consumer import Consumer
from ottla.client.errors import TimedOut
from ottla.client.producer.producer import Producer
from ottla.client.records import RecordMetadata
from ottla.operations.topics import create
from ottla.tools.workloads.plan import ConsumePlan, FaultPlan, ProducePlan, TopicPlan, WorkloadPlan

# The brokers of a workload without an address run in this process.
_start_cluster = deferred("ottla.testing.cluster", "Cluster")
_POLL_S = 0.2
_PAUSE_MIN_S = 0.002
_CLOSE_S = 0.5
_UNDO = {"kill": "restart", "pause": "resume", "isolate": "heal"}


class Cluster(Protocol):
    """Brokers in this process; the other faults are methods by the names of the plan's actions."""

    @property
    def bootstrap(self) -> str:
        """The addresses for clients."""
        ...

    def controller(self) -> int:
        """Return the number of the controller."""
        ...

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the leader of a partition."""
        ...

    def slow_disk(self, broker: int, seconds: float) -> None:
        """Delay each write and flush of a broker."""
        ...


@dataclass(slots=True)
class Produced:
    """The result of a producer; latencies are in seconds."""

    plan: ProducePlan
    sent: int = 0
    acknowledged: set[str] = field(default_factory=set)
    errors: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def facts(self) -> dict[str, Any]:
        """Return the result as plain values, with latencies in ms."""
        latencies = sorted(self.latencies)
        return {
            "topic": self.plan.topic,
            "sent": self.sent,
            "acknowledged": len(self.acknowledged),
            "errors": dict(self.errors),
            "records_per_second": round(len(latencies) / self.seconds, 1) if self.seconds else 0.0,
            "latency_ms_median": round(statistics.median(latencies) * 1000, 2)
            if latencies
            else None,
            "latency_ms_p99": round(latencies[int(len(latencies) * 0.99)] * 1000, 2)
            if latencies
            else None,
        }


@dataclass(slots=True)
class Consumed:
    """The result of a consumer."""

    plan: ConsumePlan
    values: Counter[str] = field(default_factory=Counter)
    missing: int = 0
    seconds: float = 0.0

    def facts(self) -> dict[str, Any]:
        """Return the result as plain values."""
        total = self.values.total()
        return {
            "topic": self.plan.topic,
            "read": total,
            "duplicates": total - len(self.values),
            "missing": self.missing,
            "records_per_second": round(total / self.seconds, 1) if self.seconds else 0.0,
        }


@dataclass(slots=True)
class Report:
    """The results of a run; `problems` are sentences, and empty after a good one."""

    produced: list[Produced]
    consumed: list[Consumed]
    faults: list[str]
    problems: list[str]

    def facts(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "produce": [item.facts() for item in self.produced],
            "consume": [item.facts() for item in self.consumed],
            "faults": self.faults,
            "problems": self.problems,
        }


def run_plan(plan: WorkloadPlan, say: Callable[[str], None]) -> Report:
    """Run a workload; `say` is called with a line for each fault."""
    with ExitStack() as stack:
        cluster: Cluster | None = None
        if not plan.bootstrap:
            # Brokers that are killed on purpose need not warn about it.
            logging.getLogger("ottla").addHandler(logging.NullHandler())
            cluster = stack.enter_context(_start_cluster(plan.brokers, options=plan.options))
        bootstrap = plan.bootstrap if cluster is None else cluster.bootstrap
        with Brokers(bootstrap) as brokers:
            # Report a wrong address immediately; clients would retry for minutes.
            brokers.any_connection()
            for topic in plan.topics:
                _create(brokers, topic)
        return _Run(plan, bootstrap, cluster, say).run()


def _create(brokers: Brokers, topic: TopicPlan) -> None:
    """Create a topic, or check that an existing one has the number of partitions, as Trogdor."""
    try:
        create(
            brokers,
            topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            config=topic.config,
        )
    except ApiError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
        count = len(topics.describe_topic(brokers, topic.name).partitions)
        if count != topic.partitions:
            raise ConfigError(
                f"topic {topic.name!r} exists with {count} partitions, not {topic.partitions}: "
                "delete it, or change the workload"
            ) from error


class _Run:
    """One run; its threads share nothing but finished results."""

    def __init__(
        self,
        plan: WorkloadPlan,
        bootstrap: str,
        cluster: Cluster | None,
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._bootstrap = bootstrap
        self._cluster = cluster
        self._say = say
        self._ends = time.monotonic() + plan.duration
        # The values of this run, in a topic that may have records of others.
        self._prefix = f"{time.time_ns() // 1000:x}"[-8:]
        self._stopped = threading.Event()
        self._produced = [Produced(item) for item in plan.produce]
        self._consumed = [Consumed(item) for item in plan.consume]
        self._writing = threading.Event()
        self._faults: list[str] = []
        self._problems: list[str] = []

    def run(self) -> Report:
        writers = [
            threading.Thread(target=self._guard, args=(self._produce, number, item))
            for number, item in enumerate(self._produced)
        ]
        readers = [
            threading.Thread(target=self._guard, args=(self._consume, item))
            for item in self._consumed
        ]
        try:
            with self._with_faults():
                for thread in (*writers, *readers):
                    thread.start()
                for thread in writers:
                    thread.join()
                # The readers now know all values that were acknowledged.
                self._writing.set()
            for thread in readers:
                thread.join()
        except KeyboardInterrupt:
            self._stopped.set()
            for thread in (*writers, *readers):
                thread.join()
            raise
        for item in self._consumed:
            # A reader whose time is over may end before the writers.
            item.missing = self._missing(item)
        self._problems += _problems_of(self._produced, self._consumed)
        return Report(self._produced, self._consumed, self._faults, self._problems)

    def _is_over(self) -> bool:
        return self._stopped.is_set() or time.monotonic() >= self._ends

    def _guard(self, work: Callable[..., None], *words: Any) -> None:
        try:
            work(*words)
        except OttlaError as error:
            self._problems.append(str(error))

    def _produce(self, number: int, result: Produced) -> None:
        plan, started = result.plan, time.monotonic()
        settings = {"bootstrap.servers": self._bootstrap, **plan.settings}
        producer = Producer(settings)
        try:
            for index in range(plan.records):
                if self._is_over():
                    self._problems.append(f"the time is over after {index} records to {plan.topic}")
                    break
                name = f"{self._prefix}:{number}:{index}"
                key = f"k{index % plan.keys}".encode() if plan.keys else None
                report = _reporter(result, name, time.monotonic())
                value = name.ljust(plan.value_bytes).encode()
                producer.send(plan.topic, value, key=key, on_delivery=report)
                result.sent += 1
                if plan.rate:
                    early_s = started + result.sent / plan.rate - time.monotonic()
                    # Shorter pauses take longer than they should.
                    if early_s >= _PAUSE_MIN_S:
                        self._stopped.wait(early_s)
            while not (self._is_over() or self._is_flushed(producer)):
                pass
        finally:
            producer.close(_CLOSE_S)
        result.seconds = time.monotonic() - started

    def _is_flushed(self, producer: Producer) -> bool:
        try:
            producer.flush(_POLL_S)
        except TimedOut:
            return False
        return True

    def _consume(self, result: Consumed) -> None:
        started, plan = time.monotonic(), result.plan
        settings = {
            "bootstrap.servers": self._bootstrap,
            "auto.offset.reset": "earliest",
            "group.id": plan.group or f"workload-{plan.topic}",
            **plan.settings,
        }
        with Consumer(plan.topic, config=settings) as consumer:
            while not self._is_over():
                for record in consumer.poll(_POLL_S):
                    value = (record.value or b"").decode(errors="replace").rstrip()
                    if value.startswith(self._prefix):
                        result.values[value] += 1
                if self._writing.is_set() and not self._missing(result):
                    break
        result.seconds = time.monotonic() - started

    def _missing(self, result: Consumed) -> int:
        written = [item for item in self._produced if item.plan.topic == result.plan.topic]
        return sum(len(item.acknowledged - result.values.keys()) for item in written)

    @contextmanager
    def _with_faults(self) -> Iterator[None]:
        if not self._plan.faults:
            yield
            return
        ended = threading.Event()
        thread = threading.Thread(target=self._guard, args=(self._inject, ended))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _inject(self, ended: threading.Event) -> None:
        """Apply each fault at its time, and undo it; at the end undo those that still last."""
        started = time.monotonic()
        waiting = [(fault.at, fault, 0) for fault in self._plan.faults]
        undone: list[tuple[FaultPlan, int]] = []
        while waiting:
            at, fault, broker = waiting.pop(0)
            if ended.wait(max(started + at - time.monotonic(), 0.0)):
                left = [(at, fault, broker), *waiting]
                undone += [(item, number) for _, item, number in left if number]
                self._problems += [
                    f"the workload ended before its fault at {item.at:g} s: {item.action} broker {item.broker}"
                    for _, item, number in left
                    if not number
                ]
                break
            if broker:
                self._undo(fault, broker)
                continue
            broker = self._broker_of(fault)
            self._apply(fault, broker)
            if fault.lasts:
                waiting.append((at + fault.lasts, fault, broker))
                waiting.sort(key=lambda item: item[0])
        for fault, broker in undone:
            self._undo(fault, broker)

    def _broker_of(self, fault: FaultPlan) -> int:
        assert self._cluster is not None, "the plan was checked"
        if fault.broker.isdecimal():
            return int(fault.broker)
        if fault.broker == "controller":
            return self._cluster.controller()
        _, topic, *partition = fault.broker.split(":")
        return self._cluster.leader(topic, int(partition[0]) if partition else 0)

    def _apply(self, fault: FaultPlan, broker: int) -> None:
        self._note(f"{fault.action} broker {broker}")
        if fault.action == "slow_disk":
            assert self._cluster is not None, "the plan was checked"
            self._cluster.slow_disk(broker, fault.amount)
            return
        getattr(self._cluster, fault.action)(broker)

    def _undo(self, fault: FaultPlan, broker: int) -> None:
        if fault.action == "slow_disk":
            assert self._cluster is not None, "the plan was checked"
            self._cluster.slow_disk(broker, 0)
            return
        self._note(f"{_UNDO[fault.action]} broker {broker}")
        getattr(self._cluster, _UNDO[fault.action])(broker)

    def _note(self, text: str) -> None:
        self._faults.append(text)
        self._say(text)


def _problems_of(produced: list[Produced], consumed: list[Consumed]) -> list[str]:
    """Return the sentences about records."""
    unsent = [item for item in produced if item.sent and not item.acknowledged]
    return [
        f"no record to {item.plan.topic} was acknowledged: {', '.join(item.errors) or 'no response'}"
        for item in unsent
    ] + [
        f"{item.missing} acknowledged records of {item.plan.topic} were not read"
        for item in consumed
        if item.missing
    ]


def _reporter(
    result: Produced, name: str, sent_at: float
) -> Callable[[RecordMetadata | None, Exception | None], None]:
    def report(metadata: RecordMetadata | None, error: Exception | None) -> None:
        if error is None:
            result.acknowledged.add(name)
            result.latencies.append(time.monotonic() - sent_at)
        else:
            reason = error.code.name if isinstance(error, ApiError) else type(error).__name__
            result.errors[reason] += 1

    return report
