"""`kafka-consumer-perf-test` (org.apache.kafka.tools.ConsumerPerformance)."""

import datetime
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from ottla.base.errors import OttlaError
from ottla.client.group.record_consumer import open_record_consumer
from ottla.client.transport import ConsumedRecord
from ottla.tools.scripts.console.included import IncludedTopics
from ottla.tools.scripts.console.settings import librdkafka_settings
from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    WITHOUT_EFFECT,
    Flag,
    Old,
    Options,
    Spec,
    integer,
    long,
    pairs,
)
from ottla.tools.scripts.jmx.date_format import DateFormat
from ottla.tools.scripts.perf import plot
from ottla.tools.scripts.perf.live import LiveLine
from ottla.tools.scripts.perf.metrics import ClientStatistics, consumer_metrics, print_metrics
from ottla.tools.scripts.printing import as_json, err, out
from ottla.tools.scripts.session import read_properties, unreachable_warning

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
    {"broker-list": Old("bootstrap-server"), "new-consumer": WITHOUT_EFFECT},
)  # fmt: skip
_DEPRECATED = {"messages": "num-records", "consumer.config": "command-config"}
_COLUMNS = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
_MB = 1024 * 1024
_AT_ONCE = 500
_WINDOW_S = 0.1
"""The shortest time whose rate is a point of the plot."""


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
        run = _ConsumerRun(options)
        run.run()
        if options["plot"]:
            plot.write(options["plot"], run.curve())
    except OttlaError as error:
        err(str(error))
        return 1
    if options.is_json:
        as_json(run.facts() | ({"metrics": run.metrics} if run.metrics else {}))
        return 0
    if not is_detailed:
        out(run.total())
    if run.metrics:
        print_metrics(run.metrics, run.client_id)
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


class _ConsumerRun:
    """The progress of one run."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._format = DateFormat(options["date-format"])
        self._wanted: int = options["num-records"]
        self.count = self.bytes = 0
        self._start = self._joined = time.time()
        self._end = self._start
        # Seconds since the start, and the records until then.
        self._progress = [(0.0, 0)]
        self._live = LiveLine()
        self.client_id = ""
        # Empty without --print-metrics.
        self.metrics: dict[str, float | None] = {}

    def run(self) -> None:
        """Read until the number of records or the timeout is reached."""
        options = self._options
        timeout_s = options["timeout"] / 1000
        interval_s = options["reporting-interval"] / 1000
        properties = self._properties()
        settings: dict[str, Any] = librdkafka_settings(properties)
        group, self.client_id = settings.pop("group.id"), properties["client.id"]
        statistics = ClientStatistics() if "print-metrics" in options else None
        if statistics is not None:
            settings |= statistics.settings()
        bootstrap = options["bootstrap-server"]
        topics = [options["topic"]]
        if "include" in options:
            included = IncludedTopics(options["include"], bootstrap, properties)
            topics = included.wait(lambda: time.time() - self._start <= timeout_s)
        warn = unreachable_warning(bootstrap)
        with open_record_consumer(
            bootstrap, group_id=group, settings=settings, on_down=warn
        ) as consumer:
            if topics:
                consumer.subscribe(topics, self._on_assignment)
            last = reported = time.time()
            before = (0, 0)
            while self.count < self._wanted and time.time() - last <= timeout_s:
                events = consumer.poll(0, limit=_AT_ONCE) or consumer.poll(0.1)
                records = [event for event in events if isinstance(event, ConsumedRecord)]
                now = time.time()
                if records:
                    last = now
                self.count += len(records)
                self.bytes += sum(len(r.key or b"") + len(r.value or b"") for r in records)
                self._live.show(self.count)
                if now - self._start - self._progress[-1][0] >= _WINDOW_S:
                    self._progress.append((now - self._start, self.count))
                if now - reported >= interval_s:
                    if "show-detailed-stats" in options:
                        self._print_interval(reported, now, before)
                    reported, before = now, (self.count, self.bytes)
            self._end = time.time()
            self._live.clear()
            # The rate of a very short time would be noise.
            elapsed_s = self._end - self._start
            if len(self._progress) > 1 and elapsed_s - self._progress[-1][0] < _WINDOW_S / 2:
                self._progress.pop()
            self._progress.append((elapsed_s, self.count))
            if statistics is not None:
                statistics.await_report(consumer.poll)
                self.metrics = dict(consumer_metrics(statistics, self.count, self.bytes))
        if self.count < self._wanted and not options.is_json:
            out(
                "WARNING: Exiting before consuming the expected number of records: timeout "
                f"({options['timeout']} ms) exceeded. You can use the --timeout option to increase the "
                "timeout."
            )

    def _on_assignment(self, partitions: set[tuple[str, int]]) -> None:
        if self._joined == self._start:
            self._joined = time.time()

    def _properties(self) -> dict[str, str]:
        options = self._options
        name = options["command-config"]
        return {
            "group.id": options["group"] or f"perf-consumer-{time.time_ns() % 100_000}",
            "client.id": "perf-consumer-client",
            "auto.offset.reset": "latest" if "from-latest" in options else "earliest",
            "max.partition.fetch.bytes": str(options["fetch-size"]),
            "receive.buffer.bytes": str(options["socket-buffer-size"]),
            **(read_properties(name) if name else {}),
            **pairs(options.all("command-property")),
        }

    def facts(self) -> dict[str, float]:
        """Return the totals."""
        elapsed_s = max(self._end - self._start, 1e-3)
        join_s = self._joined - self._start
        fetch_s = max(elapsed_s - join_s, 1e-3)
        return {
            "mb": self.bytes / _MB,
            "mb_per_second": self.bytes / _MB / elapsed_s,
            "records": self.count,
            "records_per_second": self.count / elapsed_s,
            "rebalance_ms": int(join_s * 1000),
            "fetch_ms": int(fetch_s * 1000),
            "fetch_mb_per_second": self.bytes / _MB / fetch_s,
            "fetch_records_per_second": self.count / fetch_s,
        }

    def curve(self) -> plot.Curve:
        """Return the rate over the time, for `--plot`."""
        points = [
            (end, (after - before) / max(end - start, 1e-3))
            for (start, before), (end, after) in pairwise(self._progress)
        ]
        title = f"Rate of {self.count} records"
        return plot.Curve(title, "seconds", "records/s", points)

    def total(self) -> str:
        """Return the last line."""
        return f"{self._moment(self._start)}, {self._moment(self._end)}, {_line(self.facts())}"

    def _print_interval(self, start: float, end: float, before: tuple[int, int]) -> None:
        self._live.clear()
        elapsed_s = max(end - start, 1e-3)
        count, size = self.count - before[0], self.bytes - before[1]
        join_ms = int(max(self._joined - start, 0) * 1000)
        fetch_s = max(elapsed_s - join_ms / 1000, 1e-3)
        facts = {
            "mb": self.bytes / _MB,
            "mb_per_second": size / _MB / elapsed_s,
            "records": self.count,
            "records_per_second": count / elapsed_s,
            "rebalance_ms": join_ms,
            "fetch_ms": int(fetch_s * 1000),
            "fetch_mb_per_second": size / _MB / fetch_s,
            "fetch_records_per_second": count / fetch_s,
        }
        out(f"{self._moment(end)}, 0, {_line(facts)}")

    def _moment(self, seconds: float) -> str:
        return self._format.format(datetime.datetime.fromtimestamp(seconds).astimezone())


def _line(facts: Mapping[str, float]) -> str:
    return ", ".join(
        str(value) if isinstance(value, int) else f"{value:.4f}" for value in facts.values()
    )
