"""`kafka-e2e-latency` (org.apache.kafka.tools.EndToEndLatency): one record at a time, there and
back.
"""

import random
import time

from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError
from ottla.client.admin import offsets, topics
from ottla.client.brokers import Brokers
from ottla.client.security.options import security_of
from ottla.client.transport import ConsumedRecord, RecordConsumer, RecordProducer
from ottla.tools.scripts.console.settings import librdkafka_settings
from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    Flag,
    Options,
    Spec,
    integer,
)
from ottla.tools.scripts.perf import plot
from ottla.tools.scripts.perf.live import LiveLine
from ottla.tools.scripts.perf.plot import Curve
from ottla.tools.scripts.printing import as_json, err, java_double, out
from ottla.tools.scripts.session import read_properties

SPEC = Spec(
    "This tool measures end-to-end latency in Kafka by sending messages and timing their reception.",
    {
        "bootstrap-server": BOOTSTRAP,
        "topic": Flag("The topic.", "topic"),
        "num-records": Flag("The number of records.", "count", integer),
        "producer-acks": Flag("1 or all.", "acks"),
        "record-size": Flag("The size of values in bytes.", "bytes", integer),
        "command-config": COMMAND_CONFIG,
        "plot": Flag("Write the latencies as a picture (an extension of Ottla).", "FILE.svg"),
    },
)
_NAMES = (
    "bootstrap-server",
    "topic",
    "num-records",
    "producer-acks",
    "record-size",
    "command-config",
)
_TIMEOUT_S = 60.0


def rewrite(command_line: list[str]) -> list[str]:
    """Turn the positional arguments of earlier versions into options."""
    if not command_line or command_line[0].startswith("-") or len(command_line) not in (5, 6):
        return command_line
    listed = ", ".join(f"--{name}" for name in _NAMES)
    out(
        "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. "
        f"Please use named arguments instead: {listed}"
    )
    return [
        word
        for name, value in zip(_NAMES, command_line, strict=False)
        for word in (f"--{name}", value)
    ]


def run(options: Options) -> int:
    """Measure, and print average and percentiles."""
    options.require("bootstrap-server", "topic", "num-records", "producer-acks", "record-size")
    if options["producer-acks"] not in ("1", "all"):
        raise UsageError(
            "Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement. Please use '1' or 'all'."
        )
    if options["num-records"] < 1:
        raise UsageError("Value for --num-records must be a positive integer.")
    try:
        plot.check_target(options["plot"])
        latencies_ms = _measure(options)
    except OttlaError as error:
        err(str(error))
        return 1
    ordered = sorted(int(value) for value in latencies_ms)
    p50, p99, p999 = (ordered[int(len(ordered) * part)] for part in (0.5, 0.99, 0.999))
    average = sum(latencies_ms) / len(latencies_ms)
    if options["plot"]:
        points = list(enumerate(latencies_ms, 1))
        title = f"Latency of {len(points)} records, there and back"
        plot.write(options["plot"], Curve(title, "record", "ms", points))
    if options.is_json:
        as_json({"average_ms": average, "p50": p50, "p99": p99, "p99.9": p999})
    else:
        out(f"Avg latency: {average:.4f} ms")
        out(f"Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}")
    return 0


def _measure(options: Options) -> list[float]:
    name = options["command-config"]
    config = read_properties(name) if name else {}
    properties = librdkafka_settings(config)
    topic, bootstrap = options["topic"], options["bootstrap-server"]
    starts = _ends(Brokers(bootstrap, security=security_of(config)), topic)
    latencies_ms: list[float] = []
    live = LiveLine()
    source = random.Random(0)  # noqa: S311 - test data
    producing = {"acks": options["producer-acks"], "linger.ms": "0", **properties}
    with (
        RecordConsumer(bootstrap, settings=properties) as consumer,
        RecordProducer(bootstrap, settings=producing) as producer,
    ):
        consumer.assign(starts)
        for number in range(options["num-records"]):
            value = bytes([source.randrange(65, 91)]) * options["record-size"]
            begin = time.perf_counter()
            producer.send(topic, value)
            producer.flush()
            record = _next(consumer, begin)
            elapsed_ms = (time.perf_counter() - begin) * 1000
            if record.value != value:
                raise ConfigError(
                    f"The message read [{record.value!r}] did not match the message sent [{value!r}]"
                )
            latencies_ms.append(elapsed_ms)
            live.show(len(latencies_ms))
            if number % 1000 == 0 and not options.is_json:
                live.clear()
                out(f"{number}\t{java_double(elapsed_ms)}")
    live.clear()
    return latencies_ms


def _next(consumer: RecordConsumer, begin: float) -> ConsumedRecord:
    while time.perf_counter() - begin < _TIMEOUT_S:
        for event in consumer.poll(0.1):
            if isinstance(event, ConsumedRecord):
                return event
    raise ConfigError(f"poll() timed out before finding a result (timeout:[{_TIMEOUT_S:.0f} s])")


def _ends(opened: Brokers, topic: str) -> dict[tuple[str, int], int]:
    with opened as brokers:
        try:
            partitions = topics.describe_topic(brokers, topic).partitions
        except ApiError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            out(
                f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and '
                "replication factor = 1"
            )
            topics.create_topic(brokers, topic, partitions=1, replication_factor=1)
            return {(topic, 0): 0}
        keys = [(topic, row.partition) for row in partitions]
        results = offsets.list_offsets(brokers, dict.fromkeys(keys, offsets.LATEST))
        return {key: result.offset for key, result in results.items()}
