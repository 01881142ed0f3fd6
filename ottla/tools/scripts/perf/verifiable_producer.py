"""`kafka-verifiable-producer` (org.apache.kafka.tools.VerifiableProducer)."""

import itertools
import time
from typing import Any

from ottla.base.errors import OttlaError
from ottla.tools.scripts.argparse4j import require, require_one
from ottla.tools.scripts.console.settings import librdkafka_settings
from ottla.tools.scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    Flag,
    Old,
    Options,
    Spec,
    integer,
    long,
)
from ottla.tools.scripts.perf.measured_producer import MeasuredProducer
from ottla.tools.scripts.perf.verifiable import event, read_deprecated_file, text
from ottla.tools.scripts.printing import err
from ottla.tools.scripts.session import read_properties
from ottla.tools.signals import StopSignals

SPEC = Spec(
    "This tool produces increasing integers to the specified topic and prints JSON metadata to stdout "
    "on each send request.",
    {
        "topic": Flag("The topic to write to.", "TOPIC"),
        "bootstrap-server": BOOTSTRAP,
        "max-messages": Flag("The number of records; -1: until stopped.", "N", integer, default=-1),
        "throughput": Flag("Records a second; -1: no limit.", "N", integer, default=-1),
        "acks": Flag("0, 1 or -1.", "ACKS", integer, default=-1, choices=("0", "1", "-1")),
        "producer.config": Flag("Use --command-config instead.", "CONFIG-FILE"),
        "command-config": COMMAND_CONFIG,
        "message-create-time": Flag(
            "The time of the first record, in ms since 1970.", "MS", long, default=-1
        ),
        "value-prefix": Flag("A number in front of each value.", "PREFIX", integer),
        "repeating-keys": Flag("Keys are 0 up to this number, again and again.", "N", integer),
    },
    {"broker-list": Old("bootstrap-server")},
    "verifiable-producer",
)


def run(options: Options) -> int:
    """Send numbers and print an event for each."""
    require(options, "topic")
    require_one(options, "bootstrap-server")
    read_deprecated_file(options, "producer.config")
    topic, limit, rate = options["topic"], options["max-messages"], options["throughput"]
    sent = acked = 0

    def report(error: str | None, message: Any) -> None:
        nonlocal acked
        key, value = text(message.key()), text(message.value())
        if error is None:
            acked += 1
            event("producer_send_success", key=key, value=value, offset=message.offset(),
                  topic=topic, partition=message.partition())  # fmt: skip
        else:
            event("producer_send_error", message=error, exception=error, key=key, value=value,
                  topic=topic)  # fmt: skip

    name = options["command-config"]
    settings = librdkafka_settings(
        {**(read_properties(name) if name else {}), "acks": str(options["acks"]), "linger.ms": "0"}
    )
    event("startup_complete")
    start = time.monotonic()
    create_time = options["message-create-time"]
    try:
        with (
            StopSignals() as stop,
            MeasuredProducer(options["bootstrap-server"], settings, report) as producer,
        ):
            for number in itertools.count():
                if stop.requested or (limit >= 0 and number >= limit):
                    break
                prefix = options["value-prefix"]
                value = str(number) if prefix is None else f"{prefix}.{number}"
                repeats = options["repeating-keys"]
                key = None if not repeats else str(number % repeats).encode()
                timestamp = None
                if create_time > 0:
                    timestamp = create_time
                    # As in Kafka, the time since the start is added for every record.
                    create_time += int((time.monotonic() - start) * 1000)
                producer.send(topic, value.encode(), key=key, timestamp=timestamp)
                sent += 1
                if rate > 0:
                    producer.flush()
                    time.sleep(max(start + sent / rate - time.monotonic(), 0))
    except OttlaError as error:
        err(str(error))
    event("shutdown_complete")
    elapsed_s = max(time.monotonic() - start, 1e-3)
    event("tool_data", sent=sent, acked=acked, target_throughput=rate, avg_throughput=acked / elapsed_s)  # fmt: skip
    return 0 if acked == sent else 1
