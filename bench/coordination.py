"""Measure what coordinators cost a client: transactions, groups, many partitions.

Runs in a separate process (`python -m bench.coordination KIND …`) and prints one JSON object.
"""

import argparse
import json
import os
import socket
import statistics
import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.load import frame
from bench.servers import ask, produce_to_all
from ottla.base.errors import ErrorCode
from ottla.wire import headers
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

Figures = dict[str, float]
_MEMBERS, _GROUP_PARTITIONS = 5, 12
_MANY = 1000


def create(bootstrap: str, partitions: int) -> str:
    """Create a topic with a name of its own."""
    name = f"coordination-{os.urandom(4).hex()}"
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(60)
    return name


def quantile(values: list[float], part: float) -> float:
    """Return the given quantile of the values."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def transactions(bootstrap: str, seconds: float) -> Figures:
    """Commit transactions of one and of a hundred records, one after the other."""
    topic = create(bootstrap, 6)
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0}
    producer = Producer({**settings, "transactional.id": topic})
    producer.init_transactions(30)
    figures: Figures = {}
    for label, records in (("1 record", 1), ("100 records", 100)):
        times: list[float] = []
        end = time.perf_counter() + seconds
        while (begin := time.perf_counter()) < end:
            producer.begin_transaction()
            for number in range(records):
                producer.produce(topic, b"a value of a transaction", partition=number % 6)
            producer.commit_transaction(30)
            times.append(time.perf_counter() - begin)
        rate = len(times) / sum(times)
        figures[f"transactions of {label}"] = rate
        figures[f"transactions of {label} p99"] = quantile(times, 0.99) * 1000
    return figures


class Member:
    """A consumer that a thread polls; `owned` are its assigned partitions."""

    def __init__(self, bootstrap: str, group: str, topic: str, protocol: str) -> None:
        self.owned: set[int] = set()
        self._leaving = threading.Event()
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        if protocol == "classic":
            settings["partition.assignment.strategy"] = "cooperative-sticky"
            settings["heartbeat.interval.ms"] = 500
        self._consumer = Consumer(settings)
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        self.owned = self.owned | {partition.partition for partition in partitions}

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.owned = self.owned - {partition.partition for partition in partitions}
        consumer.incremental_unassign(partitions)

    def _poll(self) -> None:
        while not self._leaving.is_set():
            self._consumer.poll(0.005)
        self._consumer.close()

    def leave(self) -> None:
        """Leave the group and wait for the response."""
        self._leaving.set()
        self._thread.join()


def until(holds: Callable[[], bool], what: str, seconds: float = 60) -> float:
    """Return the seconds until the condition is true."""
    begin = time.perf_counter()
    while not holds():
        if time.perf_counter() - begin > seconds:
            raise SystemExit(f"{what}: timed out after {seconds} s")
        time.sleep(0.001)
    return time.perf_counter() - begin


def is_balanced(members: list[Member]) -> bool:
    """Return True if every partition has one owner and every member its share."""
    owned = [partition for member in members for partition in member.owned]
    least = _GROUP_PARTITIONS // len(members)
    shared = all(least <= len(member.owned) <= least + 1 for member in members)
    return shared and sorted(owned) == list(range(_GROUP_PARTITIONS))


def group(bootstrap: str, protocol: str) -> Figures:
    """Let five members join at once, then one leave; measure until all partitions have owners
    again.
    """
    topic = create(bootstrap, _GROUP_PARTITIONS)
    members = [Member(bootstrap, topic, topic, protocol) for _ in range(_MEMBERS)]
    joined = until(lambda: is_balanced(members), "the first assignment")
    gone = members.pop()
    begin = time.perf_counter()
    gone.leave()
    until(lambda: is_balanced(members), "the assignment after one left")
    left = time.perf_counter() - begin
    for member in members:
        member.leave()
    return {f"group of five joins ({protocol})": joined, f"one of five leaves ({protocol})": left}


def first_record(bootstrap: str) -> Figures:
    """Let a new consumer group read its first record."""
    topic = create(bootstrap, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    producer.produce(topic, b"first")
    assert not producer.flush(30)
    begin = time.perf_counter()
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "log_level": 0}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    while True:
        message = consumer.poll(0.005)
        if message is not None and message.error() is None:
            break
    elapsed = time.perf_counter() - begin
    consumer.close()
    return {"new group to first record": elapsed}


def times_of_records(
    consumer: Consumer, producer: Producer, topic: str, count: int, rate: float
) -> list[float]:
    """Send records at a rate (1/s); return how long (us) each took to the consumer."""
    times: list[float] = []

    def send() -> None:
        begin = time.perf_counter()
        for number in range(count):
            time.sleep(max(0.0, begin + number / rate - time.perf_counter()))
            producer.produce(topic, str(time.perf_counter_ns()).encode())
            producer.poll(0)

    sender = threading.Thread(target=send)
    sender.start()
    while len(times) < count:
        message = consumer.poll(0.01)
        if message is None:
            continue
        error = message.error()
        assert error is None or error.code() == KafkaError._PARTITION_EOF, error
        value = message.value()
        assert isinstance(value, bytes)
        times.append((time.perf_counter_ns() - int(value)) / 1000)
    sender.join()
    return times


def end_to_end(bootstrap: str, seconds: float) -> Figures:
    """Send a thousand records a second and measure when a consumer receives each one."""
    topic = create(bootstrap, 1)
    settings = {"bootstrap.servers": bootstrap, "log_level": 0}
    consumer = Consumer({**settings, "group.id": topic})
    consumer.assign([TopicPartition(topic, 0, 0)])
    producer = Producer({**settings, "linger.ms": 0, "acks": 1})
    times = times_of_records(consumer, producer, topic, int(seconds * 1000), 1000)
    consumer.close()
    # The first records are in a partition that was not fetched before.
    settled = times[len(times) // 5 :]
    return {"end to end p50": statistics.median(settled), "end to end p99": quantile(settled, 0.99)}


def many_partitions(bootstrap: str, port: int) -> Figures:
    """Create a thousand partitions, write a record into each, and delete them."""
    begin = time.perf_counter()
    topic = create(bootstrap, _MANY)
    produce_to_all(port, topic, _MANY)
    created = time.perf_counter() - begin
    begin = time.perf_counter()
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.delete_topics([topic]).values():
        future.result(60)
    metadata_request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    metadata_request.allow_auto_topic_creation = False
    while ask(port, metadata_request, MetadataResponse, 9).topics[0].error_code == ErrorCode.NONE:
        time.sleep(0.001)
    return {
        "1 000 partitions until each took a record": created,
        "1 000 partitions deleted": time.perf_counter() - begin,
    }


def connections(port: int, seconds: float) -> Figures:
    """Connect, request only the metadata of the brokers, and close, as fast as one process can."""
    request = frame(headers.encode_request(MetadataRequest(topics=[]), 1, 1, "bench"))
    count = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(request)
            assert connection.recv(4096)
        count += 1
    return {"connections": count / seconds}


def main() -> None:
    """Run one kind and print its figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    port = int(options.bootstrap.rsplit(":", 1)[1])
    kinds: dict[str, Callable[[], Figures]] = {
        "transactions": lambda: transactions(options.bootstrap, options.seconds),
        "group": lambda: group(options.bootstrap, "classic"),
        "consumer_group": lambda: group(options.bootstrap, "consumer"),
        "first_record": lambda: first_record(options.bootstrap),
        "end_to_end": lambda: end_to_end(options.bootstrap, options.seconds),
        "many_partitions": lambda: many_partitions(options.bootstrap, port),
        "connections": lambda: connections(port, options.seconds),
    }
    print(json.dumps(kinds[options.kind]()))


if __name__ == "__main__":
    main()
