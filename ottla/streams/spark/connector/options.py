"""The options of the Spark source and sink, by the names of Spark's Kafka connector, checked and
typed.

One table lists the options and where they apply. Options of Spark's Kafka connector and of Java's
clients that have no meaning here are accepted with a warning, so that a job can change the name of
its format only. Other options are rejected by name, with the most similar known one. Spark passes
option names in lower case, so rows are found by the lower-case name, and messages use the
documented name. This module does not use Spark.
"""

import difflib
import functools
import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ottla.base.errors import ConfigError
from ottla.base.options import is_digits
from ottla.client.admin.offsets import EARLIEST, LATEST, TopicPartition
from ottla.client.bootstrap import parse_bootstrap
from ottla.client.brokers import Brokers
from ottla.client.config.access import ClusterAccess
from ottla.client.fetcher import FetchSettings
from ottla.client.security.options import SECURITY_OPTIONS
from ottla.client.sender import SendSettings
from ottla.streams.expressions.java_patterns import of_java
from ottla.streams.model.durations import milliseconds
from ottla.wire.records.compression import CODECS

Offsets = dict[TopicPartition, int]


class Use(Enum):
    """The operation that the options are for."""

    BATCH_READ = "reading a batch"
    STREAM_READ = "reading a stream"
    WRITE = "writing"


_BATCH = frozenset({Use.BATCH_READ})
_STREAM = frozenset({Use.STREAM_READ})
_READ = _BATCH | _STREAM
_WRITE = frozenset({Use.WRITE})
_ALL = _READ | _WRITE


@dataclass(frozen=True)
class OptionRow:
    """One option: its documented name, the operations it applies to, its parser, and its
    description.
    """

    name: str
    uses: frozenset[Use]
    parse: Callable[[str], Any]
    doc: str


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("it is empty")
    return value.strip()


def _boolean(value: str) -> bool:
    if value.strip().lower() not in ("true", "false"):
        raise ValueError("write true or false")
    return value.strip().lower() == "true"


def _integer(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError("write a whole number") from None


def _positive(value: str) -> int:
    number = _integer(value)
    if number <= 0:
        raise ValueError("it must be above 0")
    return number


def _milliseconds(value: str) -> int:
    number = _integer(value)
    if number < 0:
        raise ValueError("it is milliseconds since 1970, not below 0")
    return number


def _duration(value: str) -> int:
    return milliseconds(value.strip().lower())


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value.strip().lower() not in choices:
            raise ValueError(f"choose one of {', '.join(choices)}")
        return value.strip().lower()

    return parse


def _topics(value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    if not names:
        raise ValueError("name at least one topic")
    return names


PYTHON_PATTERN = "(?#python)"
"""The comment with which a topology's own pattern begins: others have the syntax of Java."""
_OF_COLUMNS = ": use a simpler pattern or a Python function"


def _pattern(value: str) -> re.Pattern[str]:
    if value.startswith(PYTHON_PATTERN):
        return re.compile(value)
    try:
        return of_java(value)
    except ValueError as error:
        text = str(error).removesuffix(_OF_COLUMNS)
        raise ValueError(f"{text}: write a simpler pattern, or name topics in subscribe") from None


def _json_of_topics(value: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(parsed, dict) or not parsed:
        raise ValueError('write a JSON object by topic, as in {"flights": …}')
    return parsed


def _assignment(value: str) -> tuple[TopicPartition, ...]:
    results = []
    for topic, partitions in _json_of_topics(value).items():
        if not isinstance(partitions, list) or not all(isinstance(n, int) for n in partitions):
            raise ValueError('write the partitions as a list, as in {"flights": [0, 1]}')
        results += [(topic, partition) for partition in partitions]
    return tuple(sorted(results))


def _by_partition(value: str) -> Offsets:
    results: Offsets = {}
    for topic, offsets in _json_of_topics(value).items():
        if not isinstance(offsets, dict):
            raise ValueError('write a number for each partition, as in {"flights": {"0": 23}}')
        for partition, number in offsets.items():
            if not (is_digits(partition, 9) and isinstance(number, int)):
                raise ValueError('write a number for each partition, as in {"flights": {"0": 23}}')
            results[topic, int(partition)] = number
    return results


def _starting(value: str) -> Offsets | int:
    named = {"earliest": EARLIEST, "latest": LATEST}.get(value.strip().lower())
    return _by_partition(value) if named is None else named


def _ending(value: str) -> Offsets | int:
    if value.strip().lower() == "latest":
        return LATEST
    result = _by_partition(value)
    if EARLIEST in result.values():
        raise ValueError("-2 (earliest) cannot be an end")
    return result


def _codec(value: str) -> int:
    return CODECS[_one_of(*CODECS)(value)]


def _acks(value: str) -> str:
    return _one_of("all", "-1")(value)


def _always(expected: bool) -> Callable[[str], bool]:
    def parse(value: str) -> bool:
        if _boolean(value) is not expected:
            raise ValueError(f"it is always {str(expected).lower()}")
        return expected

    return parse


_PREFIX = "kafka."
OPTIONS = (
    OptionRow("kafka.bootstrap.servers", _ALL, _text, "Brokers, as in host:port,host:port."),
    OptionRow("bootstrap", _ALL, _text, "Short for kafka.bootstrap.servers."),
    OptionRow("kafka.client.id", _ALL, _text, "The name that the brokers see; ottla-spark."),
    *(OptionRow(f"{_PREFIX}{name}", _ALL, str, doc) for name, doc in SECURITY_OPTIONS.items()),
    OptionRow("subscribe", _READ, _topics, "Topics to read, separated by commas."),
    OptionRow(
        "subscribePattern",
        _READ,
        _pattern,
        "Read the topics whose whole name matches this regular expression of Java.",
    ),
    OptionRow("assign", _READ, _assignment, 'Partitions to read: {"flights": [0, 1]}.'),
    OptionRow(
        "startingOffsets",
        _READ,
        _starting,
        "earliest (batches), latest (streams), or JSON; -2 is earliest, -1 latest.",
    ),
    OptionRow("startingTimestamp", _READ, _milliseconds, "Start at this time (ms)."),
    OptionRow(
        "startingOffsetsByTimestamp", _READ, _by_partition, "Start at a time (ms) by partition."
    ),
    OptionRow(
        "startingOffsetsByTimestampStrategy",
        _READ,
        _one_of("error", "latest"),
        "If no record is as late: error, or latest to start at the end; error.",
    ),
    OptionRow("endingOffsets", _BATCH, _ending, "latest, or JSON; -1 is latest."),
    OptionRow("endingTimestamp", _BATCH, _milliseconds, "End before this time (ms)."),
    OptionRow(
        "endingOffsetsByTimestamp", _BATCH, _by_partition, "End before a time (ms) by partition."
    ),
    OptionRow(
        "maxOffsetsPerTrigger", _STREAM, _positive, "Maximum number of records in a micro-batch."
    ),
    OptionRow(
        "maxBytesPerTrigger",
        _STREAM,
        _positive,
        "Approximate maximum bytes of a micro-batch, as stored.",
    ),
    OptionRow(
        "minOffsetsPerTrigger", _STREAM, _positive, "Wait until there are this many new records."
    ),
    OptionRow(
        "maxTriggerDelay",
        _STREAM,
        _duration,
        "Maximum wait for minOffsetsPerTrigger, as in 10s or 5m; 15m.",
    ),
    OptionRow(
        "kafka.group.id",
        _STREAM,
        _text,
        "Show the progress as this consumer group; the query never reads it.",
    ),
    OptionRow("group.id", _STREAM, _text, "Short for kafka.group.id."),
    OptionRow("minPartitions", _READ, _positive, "Minimum number of tasks to read with."),
    OptionRow(
        "maxRecordsPerPartition", _READ, _positive, "Maximum number of records for one task."
    ),
    OptionRow("includeHeaders", _READ, _boolean, "Add the column headers; false."),
    OptionRow(
        "failOnDataLoss",
        _READ,
        _boolean,
        "Fail if records were deleted before they were read; true.",
    ),
    OptionRow(
        "kafkaConsumer.pollTimeoutMs",
        _READ,
        _positive,
        "Fail after this time (ms) without a response; 120000.",
    ),
    OptionRow(
        "kafka.isolation.level",
        _READ,
        _one_of("read_uncommitted", "read_committed"),
        "read_committed leaves out open and aborted transactions; read_uncommitted.",
    ),
    OptionRow(
        "kafka.max.partition.fetch.bytes",
        _READ,
        _positive,
        "Maximum bytes of a fetch from a partition; 4194304.",
    ),
    OptionRow(
        "kafka.fetch.max.wait.ms",
        _READ,
        _positive,
        "How long (ms) a broker may wait for records; 500.",
    ),
    OptionRow("topic", _WRITE, _text, "Write to this topic and ignore the column topic."),
    OptionRow(
        "includeTimestamp",
        _WRITE,
        _boolean,
        "Write the column timestamp, instead of the current time; false.",
    ),
    OptionRow(
        "processingGuarantee",
        _WRITE,
        _one_of("at_least_once", "exactly_once"),
        "exactly_once writes each batch of a stream in transactions, once; at_least_once.",
    ),
    OptionRow(
        "kafka.transaction.timeout.ms",
        _WRITE,
        _positive,
        "Abort a transaction after this time (ms), twice what a batch may take; 900000.",
    ),
    OptionRow("kafka.compression.type", _WRITE, _codec, "none, gzip, snappy, lz4 or zstd; none."),
    OptionRow(
        "kafka.batch.size",
        _WRITE,
        _positive,
        "Maximum uncompressed bytes of a produce batch; 900000.",
    ),
    OptionRow(
        "kafka.delivery.timeout.ms",
        _WRITE,
        _positive,
        "Fail if a produce batch takes longer (ms); 120000.",
    ),
    OptionRow("kafka.acks", _WRITE, _acks, "Always all."),
    OptionRow("kafka.enable.idempotence", _WRITE, _always(True), "Always true."),
    # Options of the same call that Spark itself uses.
    OptionRow(
        "checkpointLocation", _ALL, _text, "The folder in which Spark stores a query's progress."
    ),
    OptionRow("queryName", _ALL, _text, "The query's name in Spark."),
)
_ROWS = {row.name.lower(): row for row in OPTIONS}

# Options of Spark's Kafka connector and of Java's clients that have no meaning here, and why.
_NO_GROUP = "a query has no group members; kafka.group.id names the group that shows its progress"
_OWN_REQUESTS = "this format has its own requests and retries, until kafkaConsumer.pollTimeoutMs"
_OWN_BATCHES = "this format fetches by bytes: see kafka.max.partition.fetch.bytes"
_OWN_SENDING = "this format sends whole batches: see kafka.batch.size"
_CONNECTIONS = "connections belong to the tasks of Spark"
WITHOUT_EFFECT: Mapping[str, str] = {
    "groupIdPrefix": _NO_GROUP,
    "kafka.session.timeout.ms": _NO_GROUP,
    "kafka.heartbeat.interval.ms": _NO_GROUP,
    "kafka.max.poll.interval.ms": _NO_GROUP,
    "kafka.partition.assignment.strategy": _NO_GROUP,
    "fetchOffset.numRetries": _OWN_REQUESTS,
    "fetchOffset.retryIntervalMs": _OWN_REQUESTS,
    "kafka.request.timeout.ms": _OWN_REQUESTS,
    "kafka.default.api.timeout.ms": _OWN_REQUESTS,
    "kafka.retries": _OWN_REQUESTS,
    "kafka.retry.backoff.ms": _OWN_REQUESTS,
    "kafka.retry.backoff.max.ms": _OWN_REQUESTS,
    "kafka.metadata.max.age.ms": _OWN_REQUESTS,
    "kafka.max.poll.records": _OWN_BATCHES,
    "kafka.fetch.min.bytes": _OWN_BATCHES,
    "kafka.fetch.max.bytes": _OWN_BATCHES,
    "kafka.check.crcs": "checksums are always checked",
    "kafka.client.rack": "records are read from the leaders",
    "kafka.linger.ms": _OWN_SENDING,
    "kafka.buffer.memory": _OWN_SENDING,
    "kafka.max.block.ms": _OWN_SENDING,
    "kafka.max.request.size": _OWN_SENDING,
    "kafka.max.in.flight.requests.per.connection": _OWN_SENDING,
    "kafka.connections.max.idle.ms": _CONNECTIONS,
    "kafka.reconnect.backoff.ms": _CONNECTIONS,
    "kafka.reconnect.backoff.max.ms": _CONNECTIONS,
    "kafka.receive.buffer.bytes": _CONNECTIONS,
    "kafka.send.buffer.bytes": _CONNECTIONS,
    "kafka.socket.connection.setup.timeout.ms": _CONNECTIONS,
}
_WITHOUT_EFFECT = {name.lower(): (name, reason) for name, reason in WITHOUT_EFFECT.items()}
_log = logging.getLogger(__name__)


def cluster_options(access: ClusterAccess) -> dict[str, str]:
    """Return the options that name a cluster to `format("ottla")`."""
    secured = {f"{_PREFIX}{name}": value for name, value in access.options.items()}
    return {"kafka.bootstrap.servers": access.bootstrap, **secured}


def security_in(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of TLS and SASL among those that `cluster_options` returned."""
    named = {name: f"{_PREFIX}{name}" for name in SECURITY_OPTIONS}
    return {name: options[key] for name, key in named.items() if key in options}


class SparkOptions:
    """The options of one source or sink; raises ConfigError for unknown, misplaced or invalid ones."""

    def __init__(self, options: Mapping[str, str], use: Use) -> None:
        self.use = use
        self._values: dict[str, Any] = {}
        for name, text in options.items():
            if name.lower() in _WITHOUT_EFFECT:
                _warn(*_WITHOUT_EFFECT[name.lower()])
                continue
            row = _find(name, use)
            try:
                self._values[row.name] = row.parse(text)
            except ValueError as error:
                raise ConfigError(f"Option {row.name} cannot be {text!r}: {error}.") from None
        if use is not Use.WRITE:
            self._check_sources()

    def get(self, name: str, default: Any = None) -> Any:
        """Return an option's value by its documented name."""
        assert name.lower() in _ROWS, name
        return self._values.get(name, default)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers."""
        result: str | None = self.get("kafka.bootstrap.servers", self.get("bootstrap"))
        if result is None:
            raise ConfigError(
                "Option kafka.bootstrap.servers is missing: set it to a broker, host:port."
            )
        parse_bootstrap(result)
        return result

    @property
    def access(self) -> ClusterAccess:
        """The bootstrap servers, with the options of TLS and SASL."""
        return ClusterAccess(self.bootstrap, security_in(self._values))

    def brokers(self, *, timeout_s: float = 15.0, is_proven: bool = False) -> Brokers:
        """Return connections to the cluster; ConfigError for a wrong option of TLS or SASL."""
        return self.access.brokers(
            client_id=self.client_id, timeout_s=timeout_s, is_proven=is_proven
        )

    @property
    def group_id(self) -> str | None:
        """The consumer group that shows the progress; None if none is named."""
        result: str | None = self.get("kafka.group.id", self.get("group.id"))
        return result

    @property
    def client_id(self) -> str:
        """The client id that the brokers see."""
        return str(self.get("kafka.client.id", "ottla-spark"))

    @property
    def timeout_s(self) -> float:
        """The time without progress after which an operation fails, in seconds."""
        name = (
            "kafka.delivery.timeout.ms" if self.use is Use.WRITE else "kafkaConsumer.pollTimeoutMs"
        )
        return float(self.get(name, 120_000)) / 1000

    @property
    def fetch_settings(self) -> FetchSettings:
        """The settings of fetches."""
        return FetchSettings(
            fetch_bytes=self.get("kafka.max.partition.fetch.bytes", FetchSettings.fetch_bytes),
            max_wait_ms=self.get("kafka.fetch.max.wait.ms", FetchSettings.max_wait_ms),
            timeout_s=self.timeout_s,
            read_committed=self.reads_committed,
            skips_lost=not self.get("failOnDataLoss", True),
        )

    @property
    def reads_committed(self) -> bool:
        """True if records of open and aborted transactions are left out."""
        return bool(self.get("kafka.isolation.level") == "read_committed")

    @property
    def is_exactly_once(self) -> bool:
        """True if batches are written in transactions."""
        return bool(self.get("processingGuarantee") == "exactly_once")

    @property
    def transaction_ms(self) -> int:
        """The time after which the brokers abort a transaction, in milliseconds."""
        return int(self.get("kafka.transaction.timeout.ms", 900_000))

    @property
    def send_settings(self) -> SendSettings:
        """The settings of produce requests."""
        return SendSettings(
            batch_bytes=self.get("kafka.batch.size", SendSettings.batch_bytes),
            compression=self.get("kafka.compression.type", CODECS["none"]),
            timeout_s=self.timeout_s,
        )

    def _check_sources(self) -> None:
        sources = ("subscribe", "subscribePattern", "assign")
        named = [name for name in sources if name in self]
        if len(named) != 1:
            present = "none of them is" if not named else f"{' and '.join(named)} are"
            raise ConfigError(
                f"Set exactly one of subscribe, subscribePattern and assign: {present} set."
            )
        # As in Spark's Kafka connector: a batch cannot start at the end of its topics.
        starting = self.get("startingOffsets")
        numbers = starting.values() if isinstance(starting, dict) else (starting,)
        if self.use is Use.BATCH_READ and LATEST in numbers:
            raise ConfigError("Option startingOffsets cannot be latest for a batch query.")


@functools.cache
def _warn(name: str, reason: str) -> None:
    """Log once for each process that an option has no effect."""
    _log.warning("Option %s has no effect: %s.", name, reason)


def _find(name: str, use: Use) -> OptionRow:
    row = _ROWS.get(name.lower())
    if row is None:
        raise ConfigError(_unknown(name, use))
    if use not in row.uses:
        uses = " and ".join(sorted(use.value for use in row.uses))
        raise ConfigError(f"Option {row.name} is for {uses}, not for {use.value}.")
    return row


def _unknown(name: str, use: Use) -> str:
    fitting = [key for key, row in _ROWS.items() if use in row.uses]
    near = difflib.get_close_matches(name.lower(), fitting, n=1, cutoff=0.6)
    if near:
        return f"There is no option {name}. Is {_ROWS[near[0]].name} meant?"
    names = ", ".join(sorted(_ROWS[key].name for key in fitting))
    return f"There is no option {name}. For {use.value} there are: {names}."
