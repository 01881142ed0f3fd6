"""`kafka-e2e-latency` (org.apache.kafka.tools.EndToEndLatency): one record at a time, there and
back.
"""

from ottla.base.errors import ApiError, ErrorCode, OttlaError
from ottla.client.admin import offsets, topics
from ottla.client.brokers import Brokers
from ottla.client.config.librdkafka import librdkafka_settings
from ottla.client.config.names import Role
from ottla.client.raw.consumer import RecordConsumer
from ottla.client.raw.producer import RecordProducer
from ottla.client.security.options import security_of
from ottla.operations.topics import create
from ottla.tools.measuring import plot, round_trips
from ottla_scripts.definitions import check_options
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    Flag,
    Options,
    Spec,
    integer,
)
from ottla_scripts.java_errors import java_exception, of_records
from ottla_scripts.printing import as_json, err, java_double, out
from ottla_scripts.session import open_tolerantly, read_properties

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

_ABSENT = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


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
        err(java_exception(of_records(error, options["topic"])))
        return 1
    facts = round_trips.summary(latencies_ms)
    if options["plot"]:
        plot.write(options["plot"], round_trips.curve(latencies_ms))
    if options.is_json:
        as_json(facts)
    else:
        out(f"Avg latency: {facts['average_ms']:.4f} ms")
        out(f"Percentiles: 50th = {facts['p50']}, 99th = {facts['p99']}, 99.9th = {facts['p99.9']}")
    return 0


def _measure(options: Options) -> list[float]:
    name = options["command-config"]
    config = read_properties(name) if name else {}
    for role in (Role.CONSUMER, Role.PRODUCER, Role.ADMIN):
        check_options(role, config)
    properties = librdkafka_settings(config)
    topic, bootstrap = options["topic"], options["bootstrap-server"]
    ends = _ends(Brokers(bootstrap, security=security_of(config)), topic)
    producing = {"acks": options["producer-acks"], "linger.ms": "0", **properties}

    def show(number: int, elapsed_ms: float) -> None:
        if not options.is_json:
            out(f"{number}\t{java_double(elapsed_ms)}")

    with (
        open_tolerantly(
            lambda known: RecordConsumer(bootstrap, settings=known), properties
        ) as consumer,
        open_tolerantly(lambda known: RecordProducer(bootstrap, known), producing) as producer,
    ):
        values = round_trips.letters(options["record-size"])
        count = options["num-records"]
        return round_trips.measure_round_trips((producer, consumer), ends, values, count, show)


def _ends(opened: Brokers, topic: str) -> dict[tuple[str, int], int]:
    with opened as brokers:
        try:
            partitions = topics.describe_topic(brokers, topic).partitions
        except ApiError as error:
            # Java looks for the topic in a list, which has only those that the user may see.
            if error.code not in _ABSENT:
                raise
            out(
                f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and '
                "replication factor = 1"
            )
            _create(brokers, topic)
            return {(topic, 0): 0}
        keys = [(topic, row.partition) for row in partitions]
        results = offsets.list_offsets(brokers, dict.fromkeys(keys, offsets.LATEST))
        return {key: result.offset for key, result in results.items()}


def _create(brokers: Brokers, topic: str) -> None:
    try:
        create(brokers, topic, partitions=1, replication_factor=1)
    except ApiError as error:
        out(f"Creation of topic {topic} failed")
        raise OttlaError(java_exception(error)) from error
