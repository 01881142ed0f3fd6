"""`kafka-producer-perf-test` (org.apache.kafka.tools.ProducerPerformance)."""

import itertools
import random
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ottla.base.errors import ConfigError, OttlaError
from ottla.tools.scripts.console.settings import librdkafka_settings
from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import BOOTSTRAP, Flag, Options, Spec, integer, long, pairs
from ottla.tools.scripts.perf import plot
from ottla.tools.scripts.perf.latencies import Latencies
from ottla.tools.scripts.perf.measured_producer import MeasuredProducer
from ottla.tools.scripts.perf.metrics import ClientStatistics, print_metrics, producer_metrics
from ottla.tools.scripts.printing import as_json, err, out
from ottla.tools.scripts.session import read_properties
from ottla.tools.text_files import read_text

SPEC = Spec(
    "This tool is used to verify the producer performance.",
    {
        "topic": Flag("The topic to write to.", "TOPIC"),
        "num-records": Flag("The number of records.", "NUM-RECORDS", long),
        "record-size": Flag("The size of each record in bytes.", "RECORD-SIZE", integer),
        "payload-file": Flag("A file with the values.", "PAYLOAD-FILE"),
        "payload-delimiter": Flag("The delimiter between values.", "DELIMITER", default="\\n"),
        "payload-monotonic": Flag("Values are 0, 1, 2, …"),
        "throughput": Flag("Records a second; -1: no limit.", "THROUGHPUT", float),
        "bootstrap-server": BOOTSTRAP,
        "command-property": Flag("Options of the producer, as name=value.", "PROPS", is_list=True),
        "producer-props": Flag("Use --command-property instead.", "PROPS", is_list=True),
        "command-config": Flag("A properties file.", "CONFIG-FILE"),
        "producer.config": Flag("Use --command-config instead.", "CONFIG-FILE"),
        "transactional-id": Flag("Send in transactions with this id.", "ID"),
        "transaction-duration-ms": Flag("Commit after this time (default: 3000).", "MS", long),
        "reporting-interval": Flag("Print progress so often.", "INTERVAL-MS", long, default=5000),
        "print-metrics": Flag("Print the metrics of the producer at the end."),
        "warmup-records": Flag("Records that are not counted.", "RECORDS", long, default=0),
        "random-seed": Flag("The seed of the values.", "SEED", long, default=0),
        "plot": Flag("Write the latencies as a picture (an extension of Ottla).", "FILE.svg"),
    },
)
_TRANSACTION_MS = 3000
_DEPRECATED = {"producer-props": "command-property", "producer.config": "command-config"}
_PAYLOADS = ("record-size", "payload-file", "payload-monotonic")


def run(options: Options) -> int:
    """Send records and print rates and latencies."""
    _check(options)
    try:
        plot.check_target(options["plot"])
        # As in Kafka, the file of payloads is read before the notices.
        values = _values(options)
        for old, new in _DEPRECATED.items():
            if old in options:
                out(
                    f"Option --{old} has been deprecated and will be removed in a future version. "
                    f"Use --{new} instead."
                )
        return _measure(options, values)
    except OttlaError as error:
        err(str(error))
        return 1


def on_parse_error(error: UsageError) -> int:
    """Print the error as argparse4j does, below a line of usage."""
    err("usage: producer-performance [--help] --topic TOPIC --num-records N --throughput N …")
    err(f"producer-performance: error: {error}")
    return 1


def _check(options: Options) -> None:
    missing = [name for name in ("topic", "num-records", "throughput") if name not in options]
    if missing:
        raise UsageError(f"argument --{missing[0]} is required", is_parse_error=True)
    if sum(name in options for name in _PAYLOADS) != 1:
        raise UsageError(
            "one of the arguments --record-size --payload-file --payload-monotonic is required",
            is_parse_error=True,
        )
    for name in ("num-records", "throughput", "record-size"):
        options[name]


def _measure(options: Options, values: Iterator[bytes]) -> int:
    properties = _properties(options)
    bootstrap = properties.pop("bootstrap.servers", None)
    if bootstrap is None:
        raise ConfigError("name the brokers with --bootstrap-server host:port")
    count, warmup = options["num-records"], options["warmup-records"]
    latencies = Latencies(count - warmup, options["reporting-interval"] / 1000)
    skipped = warmup

    def report(error: str | None, message: Any) -> None:
        nonlocal skipped
        if error is not None:
            err(f"record not delivered: {error}")
        elif skipped:
            skipped -= 1
        else:
            latencies.record(int(message.latency() * 1000), len(message.value() or b""))

    transaction_s = _transaction_s(options, properties)
    settings: dict[str, Any] = librdkafka_settings(properties)
    statistics = ClientStatistics() if "print-metrics" in options else None
    if statistics is not None:
        settings |= statistics.settings()
    with MeasuredProducer(bootstrap, settings, report) as producer:
        _send(producer, options, values, transaction_s)
        producer.flush()
        summary = latencies.summary()
        if statistics is not None:
            statistics.await_report(producer.poll)
    if options["plot"]:
        plot.write(options["plot"], latencies.curve())
    metrics = {} if statistics is None else dict(producer_metrics(statistics))
    if options.is_json:
        as_json(summary | ({"metrics": metrics} if metrics else {}))
        return 0
    latencies.print_total(summary)
    if metrics:
        print_metrics(metrics, properties["client.id"])
    return 0


def _send(
    producer: MeasuredProducer,
    options: Options,
    values: Iterator[bytes],
    transaction_s: float | None,
) -> None:
    pause_s = 1 / options["throughput"] if options["throughput"] > 0 else 0.0
    if transaction_s is not None:
        producer.init_transactions()
        producer.begin_transaction()
    due = begin = time.monotonic()
    for _ in range(options["num-records"]):
        if transaction_s is not None and time.monotonic() - begin >= transaction_s:
            producer.commit_transaction()
            producer.begin_transaction()
            begin = time.monotonic()
        producer.send(options["topic"], next(values))
        due += pause_s
        if pause_s:
            time.sleep(max(due - time.monotonic(), 0))
    if transaction_s is not None:
        producer.commit_transaction()


def _transaction_s(options: Options, properties: dict[str, str]) -> float | None:
    """Return the duration of transactions, with their id in the properties; None without them."""
    duration_ms = options["transaction-duration-ms"]
    if duration_ms is not None and duration_ms <= 0:
        raise UsageError(
            "--transaction-duration-ms should be greater than zero.", is_parse_error=True
        )
    if options["transactional-id"]:
        properties["transactional.id"] = options["transactional-id"]
    elif duration_ms is not None:
        properties.setdefault("transactional.id", f"performance-producer-{uuid.uuid4()}")
    if "transactional.id" not in properties:
        return None
    return (_TRANSACTION_MS if duration_ms is None else duration_ms) / 1000


def _properties(options: Options) -> dict[str, str]:
    name = options["command-config"] or options["producer.config"]
    properties = {"linger.ms": "5", "client.id": "perf-producer-client"}
    properties |= read_properties(name) if name else {}
    assignments = [*options.all("producer-props"), *options.all("command-property")]
    wrong = [assignment for assignment in assignments if "=" not in assignment]
    if wrong:
        raise ConfigError(f"Invalid property: {wrong[0]}")
    properties |= pairs(assignments)
    if options["bootstrap-server"]:
        properties["bootstrap.servers"] = options["bootstrap-server"]
    return properties


def _values(options: Options) -> Iterator[bytes]:
    """Return the values without end; reads the file of payloads first, and reports it."""
    source = random.Random(options["random-seed"])  # noqa: S311 - test data
    if "payload-monotonic" in options:
        return (str(number).encode() for number in itertools.count())
    if "payload-file" in options:
        payloads = [part.encode() for part in _read_payloads(options)]
        return (source.choice(payloads) for _ in itertools.count())
    size = options["record-size"]
    if size <= 0:
        raise ConfigError("--record-size should be greater than zero.")
    # Many different values from few random bytes: producing them must not limit the rate.
    pool = bytes(source.choices(range(65, 91), k=size + 4096))
    starts = (source.randrange(4096) for _ in itertools.count())
    return (pool[start : start + size] for start in starts)


def _read_payloads(options: Options) -> list[str]:
    path = Path(options["payload-file"])
    out(f"Reading payloads from: {path.absolute()}")
    if not path.is_file() or not path.stat().st_size:
        raise ConfigError("File does not exist or empty file provided.")
    delimiter = options["payload-delimiter"].encode().decode("unicode_escape")
    parts = read_text(path).rstrip(delimiter).split(delimiter)
    out(f"Number of records read: {len(parts)}")
    return parts
