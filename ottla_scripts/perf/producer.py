"""`kafka-producer-perf-test` (org.apache.kafka.tools.ProducerPerformance)."""

import itertools
import random
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ottla.base.errors import ConfigError, OttlaError
from ottla.client.config.librdkafka import librdkafka_settings
from ottla.client.config.names import Role
from ottla.tools.measuring import plot
from ottla.tools.measuring.latencies import MB, LatencyWindow
from ottla.tools.measuring.measured_producer import MeasuredProducer
from ottla.tools.measuring.producing import (
    ProducePlan,
    ProduceResults,
    random_values,
    send_records,
)
from ottla.tools.text_files import read_text
from ottla_scripts.argparse4j import require, require_one
from ottla_scripts.definitions import check_options
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import BOOTSTRAP, Flag, Options, Spec, integer, long, pairs
from ottla_scripts.java_errors import java_exception, of_records
from ottla_scripts.perf.metrics import ClientStatistics, print_metrics, producer_metrics
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import open_tolerantly, read_properties, unreachable_warning

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
    program="kafka-producer-perf-test",
)
_TRANSACTION_MS = 3000
_STEADY = " steady state"
_DEPRECATED = {"producer-props": "command-property", "producer.config": "command-config"}
_PAYLOADS = ("record-size", "payload-file", "payload-monotonic")
_POSITIVE = ("num-records", "record-size", "reporting-interval", "transaction-duration-ms")
_SOURCES = (
    "bootstrap-server",
    "command-property",
    "producer-props",
    "producer.config",
    "command-config",
)


def run(options: Options) -> int:
    """Send records and print rates and latencies."""
    _check(options)
    try:
        plot.check_target(options["plot"])
        # As in Kafka, the file of payloads is read before the notices.
        values = _values(options)
        for old, new in _DEPRECATED.items():
            options.rename(old, new)
        return _measure(options, values)
    except OttlaError as error:
        err(java_exception(of_records(error, options["topic"])))
        return 1


def _check(options: Options) -> None:
    require(options, "topic", "num-records", "throughput")
    require_one(options, *_PAYLOADS)
    for name in _POSITIVE:
        if options[name] is not None and options[name] <= 0:
            raise UsageError(f"--{name} should be greater than zero.")
    if options["warmup-records"] >= options["num-records"]:
        raise UsageError(
            "The value for --warmup-records must be strictly fewer than the number of records in "
            "the test, --num-records."
        )
    if not any(name in options for name in _SOURCES):
        *others, last = (f"--{name}" for name in _SOURCES)
        raise UsageError(f"At least one of {', '.join(others)} or {last} must be specified.")
    for old, new in _DEPRECATED.items():
        if old in options and new in options:
            raise UsageError(f"--{new} and --{old} cannot be specified together.")


def _measure(options: Options, values: Iterator[bytes]) -> int:
    properties = _properties(options)
    bootstrap = properties.pop("bootstrap.servers", None)
    if bootstrap is None:
        raise ConfigError("name the brokers with --bootstrap-server host:port")
    plan = ProducePlan(
        topic=options["topic"],
        records=options["num-records"],
        rate=options["throughput"],
        warmup=options["warmup-records"],
        transaction_s=_transaction_s(options, properties),
    )
    if plan.warmup > 0:
        out(
            f"Warmup first {plan.warmup} records. Steady state results will print after the "
            "complete test summary."
        )
    results = ProduceResults(
        plan,
        lambda error: err(java_exception(of_records(error, plan.topic))),
        options["reporting-interval"] / 1000,
        _print_window,
    )
    check_options(Role.PRODUCER, properties)
    settings: dict[str, Any] = librdkafka_settings(properties)
    statistics = ClientStatistics() if "print-metrics" in options else None
    if statistics is not None:
        settings |= statistics.settings()
    on_down = unreachable_warning(bootstrap)
    with open_tolerantly(
        lambda known: MeasuredProducer(bootstrap, known, results.report, on_down, continues=True),
        settings,
    ) as producer:
        send_records(producer, plan, values, results)
        if statistics is not None:
            statistics.await_report(producer.poll)
    if options["plot"]:
        plot.write(options["plot"], (results.steady or results.all).curve())
    metrics = {} if statistics is None else dict(producer_metrics(statistics))
    if options.is_json:
        as_json(results.as_object() | ({"metrics": metrics} if metrics else {}))
        return 0
    for state, total in zip(("", _STEADY), results.totals(), strict=False):
        _print_total(state, total)
    if metrics:
        print_metrics(metrics, properties["client.id"])
    return 0


def _print_window(is_steady: bool, window: LatencyWindow) -> None:
    seconds = window.elapsed_s
    out(
        f"{window.records}{_STEADY if is_steady else ''} records sent, "
        f"{window.records / seconds:.1f} records/sec "
        f"({window.size_bytes / seconds / MB:.2f} MB/sec), "
        f"{window.total_ms / max(window.records, 1):.1f} ms avg latency, "
        f"{float(window.maximum_ms):.1f} ms max latency."
    )


def _print_total(state: str, total: Mapping[str, float]) -> None:
    average = f"{total['average_ms']:.2f}" if total["records"] else "NaN"
    out(
        f"{total['records']}{state} records sent, {total['records_per_second']:.6f} records/sec "
        f"({total['mb_per_second']:.2f} MB/sec), {average} ms avg latency, "
        f"{total['maximum_ms']:.2f} ms max latency, {total['p50']} ms 50th, "
        f"{total['p95']} ms 95th, {total['p99']} ms 99th, {total['p99.9']} ms 99.9th."
    )


def _transaction_s(options: Options, properties: dict[str, str]) -> float | None:
    """Return the duration of transactions, with their id in the properties; None without them."""
    duration_ms = options["transaction-duration-ms"]
    if options["transactional-id"]:
        properties["transactional.id"] = options["transactional-id"]
    elif duration_ms is not None:
        properties.setdefault("transactional.id", f"performance-producer-{uuid.uuid4()}")
    if "transactional.id" not in properties:
        return None
    return (_TRANSACTION_MS if duration_ms is None else duration_ms) / 1000


def _properties(options: Options) -> dict[str, str]:
    name = options["command-config"]
    properties = {"linger.ms": "5", "client.id": "perf-producer-client"}
    properties |= read_properties(name) if name else {}
    assignments = options.all("command-property")
    wrong = [assignment for assignment in assignments if "=" not in assignment]
    if wrong:
        raise ConfigError(f"Invalid property: {wrong[0]}")
    properties |= pairs(assignments)
    if options["bootstrap-server"]:
        properties["bootstrap.servers"] = options["bootstrap-server"]
    return properties


def _values(options: Options) -> Iterator[bytes]:
    """Return the values without end; reads the file of payloads first, and reports it."""
    if "payload-monotonic" in options:
        return (str(number).encode() for number in itertools.count())
    if "payload-file" in options:
        payloads = [part.encode() for part in _read_payloads(options)]
        source = random.Random(options["random-seed"])  # noqa: S311 - test data
        return (source.choice(payloads) for _ in itertools.count())
    return random_values(options["record-size"], options["random-seed"])


def _read_payloads(options: Options) -> list[str]:
    path = Path(options["payload-file"])
    out(f"Reading payloads from: {path.absolute()}")
    if not path.is_file() or not path.stat().st_size:
        raise ConfigError("File does not exist or empty file provided.")
    delimiter = options["payload-delimiter"].encode().decode("unicode_escape")
    parts = read_text(path).rstrip(delimiter).split(delimiter)
    out(f"Number of records read: {len(parts)}")
    return parts
