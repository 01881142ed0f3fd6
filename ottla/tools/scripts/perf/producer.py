"""`kafka-producer-perf-test` (org.apache.kafka.tools.ProducerPerformance)."""

import itertools
import random
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ottla.base.errors import ConfigError, OttlaError
from ottla.tools.scripts.argparse4j import require, require_one
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
    program="kafka-producer-perf-test",
)
_TRANSACTION_MS = 3000
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
        err(str(error))
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
    results = _Results(options)
    transaction_s = _transaction_s(options, properties)
    settings: dict[str, Any] = librdkafka_settings(properties)
    statistics = ClientStatistics() if "print-metrics" in options else None
    if statistics is not None:
        settings |= statistics.settings()
    with MeasuredProducer(bootstrap, settings, results.report) as producer:
        _send(producer, options, values, transaction_s, results)
        producer.flush()
        results.summarize()
        if statistics is not None:
            statistics.await_report(producer.poll)
    if options["plot"]:
        plot.write(options["plot"], (results.steady or results.all).curve())
    metrics = {} if statistics is None else dict(producer_metrics(statistics))
    if options.is_json:
        as_json(results.as_object() | ({"metrics": metrics} if metrics else {}))
        return 0
    results.print_totals()
    if metrics:
        print_metrics(metrics, properties["client.id"])
    return 0


class _Results:
    """The latencies of all records, and of those behind --warmup-records."""

    def __init__(self, options: Options) -> None:
        self._count, self._warmup = options["num-records"], options["warmup-records"]
        self._window_s = options["reporting-interval"] / 1000
        self.all = Latencies(self._count, self._window_s)
        self.steady: Latencies | None = None
        self._totals: list[tuple[Latencies, dict[str, float]]] = []
        if self._warmup > 0:
            out(
                f"Warmup first {self._warmup} records. Steady state results will print after the "
                "complete test summary."
            )

    def begin(self, number: int) -> None:
        """Note that a record is sent; the first one behind the warm-up begins the steady state."""
        if number == self._warmup > 0:
            self.steady = Latencies(self._count - self._warmup, self._window_s, " steady state")
            self.all.is_silent = True

    def report(self, error: str | None, message: Any) -> None:
        """Note an acknowledged record, or print why it was not delivered."""
        if error is not None:
            err(f"record not delivered: {error}")
            return
        latency_ms, size = int(message.latency() * 1000), len(message.value() or b"")
        self.all.record(latency_ms, size)
        if self.steady is not None and self.all.count > self._warmup:
            self.steady.record(latency_ms, size)

    def summarize(self) -> None:
        """Compute the totals: later, time has passed without records."""
        parts = [self.all] if self.steady is None else [self.all, self.steady]
        self._totals = [(latencies, latencies.summary()) for latencies in parts]

    def as_object(self) -> dict[str, Any]:
        """Return the totals, those of the steady state in an object of their own."""
        (_, total), *steady = self._totals
        return {**total, "steady_state": steady[0][1]} if steady else dict(total)

    def print_totals(self) -> None:
        """Print the last lines."""
        for latencies, summary in self._totals:
            latencies.print_total(summary)


def _send(
    producer: MeasuredProducer,
    options: Options,
    values: Iterator[bytes],
    transaction_s: float | None,
    results: _Results,
) -> None:
    pause_s = 1 / options["throughput"] if options["throughput"] > 0 else 0.0
    if transaction_s is not None:
        producer.init_transactions()
        producer.begin_transaction()
    due = begin = time.monotonic()
    for number in range(options["num-records"]):
        results.begin(number)
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
    source = random.Random(options["random-seed"])  # noqa: S311 - test data
    if "payload-monotonic" in options:
        return (str(number).encode() for number in itertools.count())
    if "payload-file" in options:
        payloads = [part.encode() for part in _read_payloads(options)]
        return (source.choice(payloads) for _ in itertools.count())
    size = options["record-size"]
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
