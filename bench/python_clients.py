"""Python clients beside each other: confluent-kafka, kafka-python, aiokafka and ours, interleaved.

Each figure is a run of one client in one style against one broker process; the clients take turns,
and the report has the median of each. `python -m bench.python_clients --rounds 3` prints records/s,
processor time per record of the client's process, and our ratio to bare confluent-kafka in the same
style. A run of the fast clients takes a few tenths of a second: with fewer records, the start of
the client and the first fetch would be a part of the figure. With TMPDIR=/dev/shm the broker writes
to memory: a disk's late writes change the figures of producers by a quarter from run to run.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka

from ottla.client import (
    AdminClient,
    AsyncConsumer,
    AsyncProducer,
    Consumer,
    Producer,
    ProducerInterceptor,
)
from ottla.testing.process import BrokerProcess

TOPIC = "bench"
BATCH = 500
# One setting for all: acks=all without idempotence, which only some of the clients have.
LINGER_MS = 5
Run = Callable[[str, bytes, int], None]


def confluent_produce(bootstrap: str, value: bytes, count: int) -> None:
    """Bare librdkafka: a callback for each record, `poll(0)` after each, as its examples do."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": LINGER_MS})
    done = 0

    def delivered(error: Any, message: Any) -> None:
        nonlocal done
        assert error is None
        done += 1

    for _ in range(count):
        while True:
            try:
                producer.produce(TOPIC, value, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    producer.flush()
    assert done == count


def ours_produce(bootstrap: str, value: bytes, count: int, **settings: Any) -> None:
    """Our producer with a callback for each record."""
    done = 0

    def delivered(metadata: Any, error: Any) -> None:
        nonlocal done
        assert error is None
        done += 1

    arguments = {
        "bootstrap_servers": bootstrap,
        "linger_ms": LINGER_MS,
        "enable_idempotence": False,
    }
    with Producer(arguments | settings) as producer:
        for _ in range(count):
            producer.send(TOPIC, value, on_delivery=delivered)
    assert done == count


class _Mark(ProducerInterceptor):
    def on_send(self, record: Any) -> Any:
        return replace(record, headers=[("mark", b"1")])


def ours_produce_steps(bootstrap: str, value: bytes, count: int) -> None:
    """Our producer with a Python partitioner and two interceptors."""

    def last(key: Any, partitions: Any) -> int:
        return partitions[-1]

    ours_produce(bootstrap, value, count, interceptors=[_Mark(), _Mark()], partitioner=last)


def kafka_python_produce(bootstrap: str, value: bytes, count: int) -> None:
    """Produce with kafka-python, with a callback for each record."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap, linger_ms=LINGER_MS, enable_idempotence=False, acks="all"
    )
    done = 0

    def delivered(metadata: Any) -> None:
        nonlocal done
        done += 1

    for _ in range(count):
        producer.send(TOPIC, value).add_callback(delivered)
    producer.flush()
    producer.close()
    assert done == count


def aiokafka_produce(bootstrap: str, value: bytes, count: int) -> None:
    """Produce with aiokafka, with a future for each record."""

    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, linger_ms=LINGER_MS, acks="all"
        )
        await producer.start()
        futures = [await producer.send(TOPIC, value) for _ in range(count)]
        await producer.flush()
        assert all(future.done() for future in futures)
        await producer.stop()

    asyncio.run(run())


def confluent_async_produce(bootstrap: str, value: bytes, count: int) -> None:
    """Bare librdkafka under asyncio: a future for each record, completed by `poll(0)` on the loop."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": LINGER_MS}
        )
        futures = []

        async def send() -> Any:
            future = loop.create_future()

            def delivered(error: Any, message: Any) -> None:
                if error is None:
                    future.set_result(message)
                else:
                    future.set_exception(RuntimeError(error))

            while True:
                try:
                    producer.produce(TOPIC, value, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0)
                    await asyncio.sleep(0.002)
            producer.poll(0)
            return future

        for _ in range(count):
            futures.append(await send())
        while len(producer):
            producer.poll(0)
            await asyncio.sleep(0.001)
        assert all(future.done() for future in futures)

    asyncio.run(run())


def ours_async_produce(bootstrap: str, value: bytes, count: int) -> None:
    """Our asyncio producer: a future for each record."""

    async def run() -> None:
        async with AsyncProducer(
            bootstrap_servers=bootstrap, linger_ms=LINGER_MS, enable_idempotence=False
        ) as producer:
            futures = [await producer.send(TOPIC, value) for _ in range(count)]
            await producer.flush()
            assert all(future.done() for future in futures)

    asyncio.run(run())


def _confluent_consumer(bootstrap: str) -> Any:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False,
         "fetch.queue.backoff.ms": 10}
    )  # fmt: skip
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    return consumer


def confluent_consume(bootstrap: str, value: bytes, count: int) -> None:
    """Bare librdkafka: `poll` for each record."""
    consumer, size, seen = _confluent_consumer(bootstrap), 0, 0
    while seen < count:
        message = consumer.poll(1.0)
        if message is None or message.error() is not None:
            continue
        size += len(message.value())
        seen += 1
    assert size == seen * len(value)
    consumer.close()


def confluent_batches(bootstrap: str, value: bytes, count: int) -> None:
    """Bare librdkafka: `consume` for a batch."""
    consumer, size, seen = _confluent_consumer(bootstrap), 0, 0
    while seen < count:
        for message in consumer.consume(BATCH, 0.05):
            if message.error() is not None:
                continue
            size += len(message.value())
            seen += 1
    assert size == seen * len(value)
    consumer.close()


def ours_consume(bootstrap: str, value: bytes, count: int) -> None:
    """Our consumer: iteration."""
    size = 0
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign({(TOPIC, 0): 0})
        for seen, record in enumerate(consumer, 1):
            size += len(record.value)
            if seen == count:
                break
    assert size == count * len(value)


def ours_batches(bootstrap: str, value: bytes, count: int) -> None:
    """Our consumer: `poll` for a batch."""
    size = seen = 0
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign({(TOPIC, 0): 0})
        while seen < count:
            for record in consumer.poll(1.0):
                size += len(record.value)
                seen += 1
    assert size == seen * len(value)


def kafka_python_consume(bootstrap: str, value: bytes, count: int) -> None:
    """Consume with kafka-python, by iteration."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    partition = kafka.TopicPartition(TOPIC, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    for seen, record in enumerate(consumer, 1):
        assert record.value is not None
        if seen == count:
            break
    consumer.close()


def kafka_python_batches(bootstrap: str, value: bytes, count: int) -> None:
    """Consume with kafka-python, by `poll` for a batch."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    partition = kafka.TopicPartition(TOPIC, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    seen = 0
    while seen < count:
        for records in consumer.poll(1000, max_records=BATCH).values():
            for record in records:
                assert record.value is not None
                seen += 1
    consumer.close()


def aiokafka_batches(bootstrap: str, value: bytes, count: int) -> None:
    """Consume with aiokafka, by `getmany` for a batch."""

    async def run() -> None:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap)
        await consumer.start()
        partition = aiokafka.TopicPartition(TOPIC, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        seen = 0
        while seen < count:
            result = await consumer.getmany(timeout_ms=1000, max_records=BATCH)
            for records in result.values():
                for record in records:
                    assert record.value is not None
                    seen += 1
        await consumer.stop()

    asyncio.run(run())


def aiokafka_consume(bootstrap: str, value: bytes, count: int) -> None:
    """Consume with aiokafka, by iteration."""

    async def run() -> None:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap)
        await consumer.start()
        partition = aiokafka.TopicPartition(TOPIC, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        seen = 0
        async for record in consumer:
            assert record.value is not None
            seen += 1
            if seen == count:
                break
        await consumer.stop()

    asyncio.run(run())


def ours_async_consume(bootstrap: str, value: bytes, count: int) -> None:
    """Our asyncio consumer: iteration."""

    async def run() -> None:
        async with AsyncConsumer(bootstrap_servers=bootstrap) as consumer:
            await consumer.assign({(TOPIC, 0): 0})
            seen = 0
            async for record in consumer:
                assert record.value is not None
                seen += 1
                if seen == count:
                    break

    asyncio.run(run())


STYLES: dict[str, dict[str, Run]] = {
    "produce, callback": {
        "confluent-kafka": confluent_produce,
        "ottla": ours_produce,
        "kafka-python": kafka_python_produce,
        "ottla, partitioner and 2 interceptors": ours_produce_steps,
    },
    "produce, asyncio": {
        "confluent-kafka": confluent_async_produce,
        "ottla": ours_async_produce,
        "aiokafka": aiokafka_produce,
    },
    "consume, one by one": {
        "confluent-kafka": confluent_consume,
        "ottla": ours_consume,
        "kafka-python": kafka_python_consume,
    },
    "consume, batches": {
        "confluent-kafka": confluent_batches,
        "ottla": ours_batches,
        "kafka-python": kafka_python_batches,
        "aiokafka": aiokafka_batches,
    },
    "consume, asyncio": {"ottla": ours_async_consume, "aiokafka": aiokafka_consume},
}
# These take many times as long: their figures need fewer records.
SLOW = ("kafka-python", "ottla, partitioner and 2 interceptors")


def fill(bootstrap: str, value: bytes, count: int) -> None:
    """Create the topic again, with records for every consumer to read."""
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        if TOPIC in [row.name for row in admin.list_topics()]:
            admin.delete_topic(TOPIC)
        admin.create_topic(TOPIC, partitions=1)
    confluent_produce(bootstrap, value, count)


def _chosen(words: argparse.Namespace) -> dict[str, dict[str, Run]]:
    chosen = {
        style: {name: run for name, run in STYLES[style].items() if name in words.clients}
        for style in words.styles
    }
    return {style: clients for style, clients in chosen.items() if clients}


def measure(bootstrap: str, size: int, words: argparse.Namespace) -> list[str]:
    """Run every client in turn, `rounds` times, and return lines with the medians."""
    count, styles = words.count, _chosen(words)
    value = b"x" * size
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    costs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for turn in range(words.rounds):
        fill(bootstrap, value, count)
        for style, clients in styles.items():
            # Each client is first as often as last: the machine may slow down within a round.
            order = list(clients.items())
            for client, run in order[turn % len(order) :] + order[: turn % len(order)]:
                records = count // 5 if client in SLOW else count
                cpu, begin = time.process_time(), time.perf_counter()
                run(bootstrap, value, records)
                rates[style, client].append(records / (time.perf_counter() - begin))
                costs[style, client].append((time.process_time() - cpu) / records * 1e6)
    lines = []
    for style, clients in styles.items():
        lines += ["", f"{style}, {size} B"]
        for client in clients:
            rate = statistics.median(rates[style, client])
            base = rates.get((style, "confluent-kafka"))
            pairs = zip(rates[style, client], base or rates[style, client], strict=True)
            ratio = statistics.median(own / bare for own, bare in pairs)
            cost = statistics.median(costs[style, client])
            output = f"{ratio:5.2f} × confluent-kafka" if base else ""
            lines.append(f"  {client:40} {rate:9,.0f} records/s  {cost:6.2f} µs CPU  {output}")
    return lines


def main() -> None:
    """Start a broker and measure both sizes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=5)
    names = sorted({name for clients in STYLES.values() for name in clients})
    parser.add_argument("--styles", nargs="+", choices=STYLES, default=list(STYLES))
    parser.add_argument("--clients", nargs="+", choices=names, default=names)
    parser.add_argument("--save", type=Path, help="write the report to this file, too")
    options = parser.parse_args()
    report = [f"python -m bench.python_clients {' '.join(map(repr, sys.argv[1:]))}"]
    with (
        tempfile.TemporaryDirectory() as folder,
        BrokerProcess(Path(folder) / "data") as broker,
    ):
        for size in (100, 1000):
            lines = measure(broker.bootstrap, size, options)
            print("\n".join(lines), flush=True)
            report += lines
    if options.save is not None:
        options.save.write_text("\n".join(report) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
