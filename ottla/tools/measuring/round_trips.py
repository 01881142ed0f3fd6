"""Send one record at a time and wait until it is read, as EndToEndLatency of Apache Kafka does."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from ottla.base.errors import ConfigError
from ottla.client.raw.consumer import ConsumedRecord, RecordConsumer
from ottla.client.raw.producer import RecordProducer
from ottla.client.transport import TopicPartition
from ottla.tools.measuring.live import LiveLine
from ottla.tools.measuring.plot import Curve

_TIMEOUT_S = 60.0


def measure_round_trips(
    clients: tuple[RecordProducer, RecordConsumer],
    ends: Mapping[TopicPartition, int],
    values: Iterator[bytes],
    count: int,
    on_record: Callable[[int, float], None] = lambda number, elapsed_ms: None,
) -> list[float]:
    """Return the latencies of `count` records in ms; `ends` are the ends of the topic's partitions.

    `on_record` is called for every thousandth record. ConfigError if another record is read, or
    none within 60 s.
    """
    producer, consumer = clients
    topic = next(iter(ends))[0]
    live = LiveLine()
    latencies_ms: list[float] = []
    consumer.assign(ends)
    for number in range(count):
        value = next(values)
        begin_ns = time.perf_counter_ns()
        producer.send(topic, value)
        producer.flush()
        record = _next(consumer, begin_ns)
        # Java's arithmetic, which shows nanoseconds and no more.
        elapsed_ms = (time.perf_counter_ns() - begin_ns) / 1000 / 1000
        if record.value != value:
            raise ConfigError(
                f"The message read [{record.value!r}] did not match the message sent [{value!r}]"
            )
        latencies_ms.append(elapsed_ms)
        live.show(len(latencies_ms))
        if number % 1000 == 0:
            live.clear()
            on_record(number, elapsed_ms)
    live.clear()
    return latencies_ms


def letters(size_bytes: int) -> Iterator[bytes]:
    """Return values without end; each repeats one letter."""
    source = random.Random(0)  # noqa: S311 - test data
    while True:
        yield bytes([source.randrange(65, 91)]) * size_bytes


def summary(latencies_ms: Sequence[float]) -> dict[str, float]:
    """Return the average and the percentiles, in ms."""
    ordered = sorted(int(value) for value in latencies_ms)
    p50, p99, p999 = (ordered[int(len(ordered) * part)] for part in (0.5, 0.99, 0.999))
    average = sum(latencies_ms) / len(latencies_ms)
    return {"average_ms": average, "p50": p50, "p99": p99, "p99.9": p999}


def curve(latencies_ms: Sequence[float]) -> Curve:
    """Return the latencies in the order of the records, for `--plot`."""
    title = f"Latency of {len(latencies_ms)} records, there and back"
    return Curve(title, "record", "ms", list(enumerate(latencies_ms, 1)))


def _next(consumer: RecordConsumer, begin_ns: int) -> ConsumedRecord:
    while time.perf_counter_ns() - begin_ns < _TIMEOUT_S * 1_000_000_000:
        for event in consumer.poll(0.1):
            if isinstance(event, ConsumedRecord):
                return event
    raise ConfigError(f"poll() timed out before finding a result (timeout:[{_TIMEOUT_S:.0f} s])")
