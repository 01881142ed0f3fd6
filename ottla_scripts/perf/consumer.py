"""`kafka-consumer-perf-test` (org.apache.kafka.tools.ConsumerPerformance)."""

import datetime
import time
from collections.abc import Mapping
from typing import Any

from ottla.base.errors import OttlaError
from ottla.client.config.librdkafka import librdkafka_settings
from ottla.client.config.names import Role
from ottla.client.group.record_consumer import open_record_consumer
from ottla.tools.measuring import plot
from ottla.tools.measuring.consuming import Amount, ConsumerRun, rates
from ottla_scripts.console.included import IncludedTopics
from ottla_scripts.console.missing_topics import await_topic_of_group
from ottla_scripts.definitions import check_options
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    VALUE_WITHOUT_EFFECT,
    WITHOUT_EFFECT,
    ZOOKEEPER,
    Flag,
    Old,
    Options,
    Spec,
    integer,
    long,
    pairs,
)
from ottla_scripts.java_errors import java_exception, of_records
from ottla_scripts.jmx.date_format import DateFormat
from ottla_scripts.perf.metrics import ClientStatistics, consumer_metrics, print_metrics
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import open_tolerantly, read_properties, unreachable_warning

SPEC = Spec(
    "This tool is used to verify the consumer performance.",
    {
        "bootstrap-server": BOOTSTRAP,
        "topic": Flag("The topic to read.", "topic"),
        "include": Flag("The topics to read, as a regular expression.", "regex"),
        "group": Flag("The group.", "gid"),
        "num-records": Flag("The number of records to read.", "count", long),
        "messages": Flag("Use --num-records instead.", "count", long),
        "fetch-size": Flag("Set max.partition.fetch.bytes.", "size", integer, default=1 << 20),
        "from-latest": Flag("Start at the end of the topic."),
        "socket-buffer-size": Flag("Set receive.buffer.bytes.", "size", integer, default=2 << 20),
        "command-config": COMMAND_CONFIG,
        "consumer.config": Flag("Use --command-config instead.", "config file"),
        "command-property": Flag("An option of the consumer, as name=value.", "prop1=val1"),
        "show-detailed-stats": Flag("Print a line each reporting interval."),
        "reporting-interval": Flag("The reporting interval in ms.", "interval_ms", long, default=5000),
        "hide-header": Flag("Leave out the first line."),
        "timeout": Flag("Stop after this time without records.", "milliseconds", long, default=10_000),
        "date-format": Flag(
            "The format of times, as in Java's SimpleDateFormat.",
            "date format",
            default="yyyy-MM-dd HH:mm:ss:SSS",
        ),
        "print-metrics": Flag("Print the metrics of the consumer at the end."),
        "threads": Flag("Accepted, without effect.", "count", integer),
        "plot": Flag("Write the rate as a picture (an extension of Ottla).", "FILE.svg"),
    },
    {
        "broker-list": Old("bootstrap-server"),
        "zookeeper": ZOOKEEPER,
        "new-consumer": WITHOUT_EFFECT,
        "num-fetch-threads": VALUE_WITHOUT_EFFECT,
    },
)  # fmt: skip
_DEPRECATED = {"messages": "num-records", "consumer.config": "command-config"}
_COLUMNS = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"


def run(options: Options) -> int:
    """Read records and print the rate."""
    _check(options)
    for old, new in _DEPRECATED.items():
        options.rename(old, new, "Warning: --{old} is deprecated. Use --{new} instead.")
    is_detailed = "show-detailed-stats" in options
    if "hide-header" not in options and not options.is_json:
        out(f"{'time, threadId' if is_detailed else 'start.time, end.time'}, {_COLUMNS}")
    try:
        plot.check_target(options["plot"])
        measured = _Measurement(options)
        measured.run()
        if options["plot"]:
            plot.write(options["plot"], measured.progress.curve())
    except OttlaError as error:
        names = str(options["topic"] or options["include"])
        err(java_exception(of_records(error, names, options["group"])))
        return 1
    metrics = measured.metrics
    if options.is_json:
        as_json(measured.progress.facts() | ({"metrics": metrics} if metrics else {}))
        return 0
    if not is_detailed:
        out(measured.total())
    if metrics:
        print_metrics(metrics, measured.client_id)
    return 0


def _check(options: Options) -> None:
    if ("num-records" in options) == ("messages" in options):
        raise UsageError(
            "Exactly one of the following arguments is required: [messages], [num-records]"
        )
    options.require("bootstrap-server")
    if ("topic" in options) == ("include" in options):
        raise UsageError("Exactly one of the following arguments is required: [topic], [include]")
    options.forbid("consumer.config", "command-config")


class _Measurement:
    """One run, with the metrics and the lines of this script."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._format = DateFormat(options["date-format"])
        self._wanted: int = options["num-records"]
        self._timeout_s = options["timeout"] / 1000
        self.progress = ConsumerRun(
            self._wanted,
            self._timeout_s,
            options["reporting-interval"] / 1000,
            self._print_interval,
        )
        self.client_id = ""
        # Empty without --print-metrics.
        self.metrics: dict[str, float | None] = {}

    def run(self) -> None:
        """Read until the number of records or the timeout is reached."""
        options, progress = self._options, self.progress
        properties = self._properties()
        check_options(Role.CONSUMER, properties)
        settings: dict[str, Any] = librdkafka_settings(properties)
        group, self.client_id = settings.pop("group.id"), properties["client.id"]
        statistics = ClientStatistics() if "print-metrics" in options else None
        if statistics is not None:
            settings |= statistics.settings()
        bootstrap = options["bootstrap-server"]

        def goes_on() -> bool:
            return bool(time.time() - progress.start <= self._timeout_s)

        topics = [options["topic"]]
        if "include" in options:
            topics = IncludedTopics(options["include"], bootstrap, properties).wait(goes_on)
        elif not await_topic_of_group(bootstrap, options["topic"], properties, goes_on):
            topics = []
        warn = unreachable_warning(bootstrap)
        with open_tolerantly(
            lambda known: open_record_consumer(
                bootstrap, group_id=group, settings=known, on_down=warn
            ),
            settings,
        ) as consumer:
            if topics:
                consumer.subscribe(topics, progress.on_assignment)
            progress.run(consumer)
            if statistics is not None:
                statistics.await_report(consumer.poll)
                self.metrics = dict(consumer_metrics(statistics, progress.count, progress.bytes))
        if not progress.is_complete and not options.is_json:
            out(
                "WARNING: Exiting before consuming the expected number of records: timeout "
                f"({options['timeout']} ms) exceeded. You can use the --timeout option to increase the "
                "timeout."
            )

    def _properties(self) -> dict[str, str]:
        options = self._options
        name = options["command-config"]
        return {
            "client.id": "perf-consumer-client",
            **(read_properties(name) if name else {}),
            **pairs(options.all("command-property")),
            # As in Kafka, options have precedence over properties.
            "group.id": options["group"] or f"perf-consumer-{time.time_ns() % 100_000}",
            "auto.offset.reset": "latest" if "from-latest" in options else "earliest",
            "max.partition.fetch.bytes": str(options["fetch-size"]),
            "receive.buffer.bytes": str(options["socket-buffer-size"]),
            "check.crcs": "false",
        }

    def total(self) -> str:
        """Return the last line."""
        progress = self.progress
        start, end = self._moment(progress.start), self._moment(progress.end)
        return f"{start}, {end}, {_line(progress.facts())}"

    def _print_interval(self, before: Amount, after: Amount) -> None:
        if "show-detailed-stats" in self._options:
            join_s = max(self.progress.joined - before.at, 0)
            out(f"{self._moment(after.at)}, 0, {_line(rates(before, after, join_s))}")

    def _moment(self, seconds: float) -> str:
        return self._format.format(datetime.datetime.fromtimestamp(seconds).astimezone())


def _line(facts: Mapping[str, float]) -> str:
    return ", ".join(
        str(value) if isinstance(value, int) else f"{value:.4f}" for value in facts.values()
    )
