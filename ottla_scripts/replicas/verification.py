"""`kafka-replica-verification` (org.apache.kafka.tools.ReplicaVerificationTool).

It reads all replicas side by side up to the high watermark, until it is stopped. `ottla replica
verify` does it once.

Not done: `--fetch-size` has no effect; a fetch is of at most 1 MiB.
"""

import datetime
import time
from collections.abc import Mapping, Sequence

from ottla.base.errors import ApiError, OttlaError
from ottla.client.admin import offsets, topics
from ottla.client.brokers import Brokers
from ottla.client.errors import ClientError
from ottla.tools.replica.reading import Batch, Replica
from ottla.tools.signals import StopSignals
from ottla.wire.records import batch
from ottla_scripts.admin.topics import topic_pattern
from ottla_scripts.flags import BOOTSTRAP, Flag, Old, Options, Spec, integer, long
from ottla_scripts.java_order import hash_order, partition_hash
from ottla_scripts.printing import as_json, err, flush_or_end, out
from ottla_scripts.session import check_bootstrap

Key = tuple[str, int]
_FETCH_BYTES = 1 << 20

SPEC = Spec(
    "Validate that all replicas for a set of topics have the same data.",
    {
        "broker-list": BOOTSTRAP,
        "fetch-size": Flag(
            "Bytes of a fetch from one replica.", "bytes", integer, default=_FETCH_BYTES
        ),
        "max-wait-ms": Flag("The pause if no data is new.", "ms", integer, default=1_000),
        "topics-include": Flag(
            "A regular expression of topics; a comma separates alternatives.",
            "Java regex (String)",
            default=".*",
        ),
        "time": Flag(
            "The start: a time in ms, -1 (latest) or -2 (earliest).",
            "timestamp/-1(latest)/-2(earliest)",
            long,
            default=-1,
        ),
        "report-interval-ms": Flag("The interval of reports.", "ms", long, default=30_000),
    },
    {
        "bootstrap-server": Old("broker-list", ""),
        "topic-white-list": Old("topics-include"),
    },
)


def run(options: Options) -> int:
    """Compare the replicas and report the largest lag, until stopped or until they differ."""
    options.require("broker-list")
    check_bootstrap(options["broker-list"])
    try:
        pattern = topic_pattern(options["topics-include"])
    except ValueError as error:
        # Only this tool omits the full stop.
        err(str(error).removesuffix("."))
        return 1
    try:
        with Brokers(options["broker-list"]) as brokers, StopSignals() as stop:
            selected = [
                row
                for row in topics.list_topics(brokers)
                if pattern is not None and pattern.fullmatch(row.name)
            ]
            if not selected:
                err("No topics found: --topics-include matches no topic, or no topic exists.")
                return 1
            verification = Verification(brokers, selected, options)
            if not options.is_json:
                out(f"{_now()}: verification process is started")
            while not stop.requested:
                is_idle = not verification.advance()
                verification.report_if_due()
                flush_or_end()
                if is_idle:
                    stop.wait(min(options["max-wait-ms"], options["report-interval-ms"]) / 1000)
    except _Different as error:
        out(f"{_now()}: {error}")
        return 1
    except OttlaError as error:
        err(str(error))
        return 1
    return stop.exit_code


class _Different(Exception):
    """Two replicas do not have the same batches."""


class Verification:
    """The positions of one run."""

    def __init__(
        self, brokers: Brokers, selected: Sequence[topics.Topic], options: Options
    ) -> None:
        rows = {(topic.name, row.partition): row for topic in selected for row in topic.partitions}
        self._keys = hash_order(rows, partition_hash)
        self._replicas: dict[Key, list[Replica]] = {
            key: [Replica(brokers, broker, *key) for broker in sorted(rows[key].replicas)]
            for key in self._keys
        }
        self._at = _starts(brokers, self._keys, options["time"])
        self._interval_s = options["report-interval-ms"] / 1000
        self._is_json = options.is_json
        self._reported = time.monotonic()
        self._lags: dict[Key, int] = {}

    def advance(self) -> bool:
        """Compare the next batches of every partition; return False if no batches are left."""
        before = dict(self._at)
        for key in self._keys:
            self._lags[key] = self._compare(key)
        return self._at != before

    def report_if_due(self) -> None:
        """Print the largest lag if the interval has passed."""
        if time.monotonic() - self._reported < self._interval_s:
            return
        self._reported = time.monotonic()
        key = max(self._keys, key=lambda item: self._lags[item])
        name, lag, at, count = f"{key[0]}-{key[1]}", self._lags[key], self._at[key], len(self._keys)
        if self._is_json:
            as_json({"max_lag": lag, "topic": key[0], "partition": key[1], "offset": at, "partitions": count})  # fmt: skip
            return
        out(
            f"{_now()}: max lag is {lag} for partition {name} at offset {at} among {count} partitions"
        )

    def _compare(self, key: Key) -> int:
        """Compare one partition from its position on; return the lag that is left."""
        high_watermark = -1
        batches: dict[int, list[Batch]] = {}
        for replica in self._replicas[key]:
            try:
                content = replica.read(self._at[key])
            except (ApiError, ClientError):
                # As in Kafka, a replica that cannot be read delays the verification.
                batches[replica.broker] = []
                continue
            high_watermark = max(high_watermark, content.high_watermark)
            end = content.high_watermark
            batches[replica.broker] = [item for item in content.batches if item.last_offset < end]
        for rows in zip(*batches.values(), strict=False):
            _check_equal(key, dict(zip(batches, rows, strict=True)))
            self._at[key] = rows[0].last_offset + 1
        return high_watermark - self._at[key]


def _check_equal(key: Key, batches: Mapping[int, Batch]) -> None:
    (first, first_batch), *other_replicas = batches.items()
    name = f"{key[0]}-{key[1]}"
    for broker, other in other_replicas:
        if first_batch.last_offset != other.last_offset:
            raise _Different(
                f"partition {name}: replica {first}'s offset {first_batch.last_offset} doesn't match replica "
                f"{broker}'s offset {other.last_offset}"
            )
        ours, theirs = batch.parse_header(first_batch.data).crc, batch.parse_header(other.data).crc
        if ours != theirs:
            out(
                f"{_now()}: partition {name} has unmatched checksum at offset {other.last_offset}; "
                f"replica {first}'s checksum {ours}; replica {broker}'s checksum {theirs}"
            )


def _starts(brokers: Brokers, keys: Sequence[Key], timestamp: int) -> dict[Key, int]:
    if timestamp >= 0:
        return offsets.offsets_at(brokers, keys, timestamp)
    results = offsets.list_offsets(brokers, dict.fromkeys(keys, timestamp))
    return {key: row.offset for key, row in results.items()}


def _now() -> str:
    moment = datetime.datetime.now().astimezone()
    return f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03}"
