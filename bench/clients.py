"""Produce and consume with librdkafka in a separate process; prints one JSON object.

With a C compiler, bench/client.c uses librdkafka directly. The clients here, in Python, are limited
by Python for small records: compare the broker's CPU seconds per GB then, and not the rates.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from bench.compiled import compiled


def json_values(size: int) -> list[bytes]:
    """Return values that look like events: they compress to about half, within a batch as well."""
    chance = random.Random(7)
    values = []
    for number in range(20_000):
        text = f'{{"id":{number},"amount":{chance.random():.6f},"status":"shipped","digits":"'
        values.append((text + str(chance.getrandbits(4 * size)))[: size - 2].encode() + b'"}')
    return values


def program() -> Path | None:
    """Return bench/client.c, linked with confluent-kafka's own librdkafka; None if that is not
    possible.
    """
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    libraries = sorted(folder.glob("librdkafka*.so*"))
    return compiled("client.c", libraries[:1]) if libraries else None


def run_compiled(client: Path, words: argparse.Namespace) -> dict[str, float]:
    """Do in C what `produce` and `consume` do."""
    common = (words.bootstrap, words.topic, words.partitions, words.count, words.value_bytes)
    with tempfile.NamedTemporaryFile() as file:
        if words.kind == "produce":
            file.write(b"".join(json_values(words.value_bytes)))
            file.flush()
            own: tuple[object, ...] = (file.name, words.codec, words.linger_ms)
        else:
            own = (words.passes,)
        command = [str(client), words.kind, *map(str, (*common, *own)), *words.setting]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return dict(json.loads(done.stdout))


def settings_of(words: argparse.Namespace) -> dict[str, str]:
    """Return the settings that the producer and the consumer have in common."""
    pairs = (word.partition("=")[::2] for word in words.setting)
    return {"bootstrap.servers": words.bootstrap, **dict(pairs)}


def produce(words: argparse.Namespace) -> dict[str, float]:
    """Send JSON-like records of one size, acks=1; return rates of the values."""
    topic, partitions, count, size = words.topic, words.partitions, words.count, words.value_bytes
    values = json_values(size)
    producer = Producer(
        {
            **settings_of(words),
            "acks": 1,
            "linger.ms": words.linger_ms,
            "batch.size": 1_000_000,
            "compression.codec": words.codec,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 512_000,
        }
    )
    producer.list_topics(topic)
    begin = time.perf_counter()
    for number in range(count):
        while True:
            try:
                producer.produce(topic, values[number % len(values)], partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.01)
        if not number & 1023:
            producer.poll(0)
    left = producer.flush(120)
    elapsed = time.perf_counter() - begin
    assert not left, f"{left} records were not acknowledged"
    return {"records_s": count / elapsed, "mb_s": count * size / elapsed / 1e6}


def consume(words: argparse.Namespace) -> dict[str, float]:
    """Read the records of a topic from the beginning, several times.

    One pass takes a third of a second, too short for CPU time in hundredths.
    """
    topic, partitions, count = words.topic, words.partitions, words.count
    consumer = Consumer(
        {
            **settings_of(words),
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.max.bytes": 64 << 20,
            "max.partition.fetch.bytes": 8 << 20,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 512_000,
        }
    )
    seen = size = 0
    elapsed = 0.0
    for _ in range(words.passes):
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        left = count - len(consumer.consume(1, 10))
        begin = time.perf_counter()
        while left:
            batch = consumer.consume(min(10_000, left), 5)
            assert batch, f"{left} of {count} records did not come"
            for message in batch:
                error = message.error()
                assert error is None or error.code() == KafkaError._PARTITION_EOF, error
            left -= len(batch)
            seen += len(batch)
            size += sum(map(len, batch))
        elapsed += time.perf_counter() - begin
        consumer.unassign()
    consumer.close()
    return {"records_s": seen / elapsed, "mb_s": size / elapsed / 1e6}


def main() -> None:
    """Run one transfer and print its figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["produce", "consume"])
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--codec", default="none")
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--value-bytes", type=int, default=1024)
    parser.add_argument("--linger-ms", type=int, default=5)
    parser.add_argument("--passes", type=int, default=1, help="how often to consume it")
    parser.add_argument(
        "--setting", action="append", default=[], help="NAME=VALUE, a setting of librdkafka"
    )
    options = parser.parse_args()
    client = program()
    if client is not None:
        figures = run_compiled(client, options)
    else:
        figures = produce(options) if options.kind == "produce" else consume(options)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
