"""The sink of the Data Source `ottla`: writes data frames to topics, in batch and streaming
queries.

Each task is an idempotent producer that writes columns with acks=all, so a task itself writes no
duplicates. With processingGuarantee=at_least_once a task that Spark repeats writes its rows again,
as with Spark's Kafka sink. With exactly_once every micro-batch of a stream is written once, in
transactions (`exactly_once.py`). Columns are the same as in Spark's Kafka connector: value, and the
optional key, topic, partition and headers.
"""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from ottla.base.errors import ApiError, ConfigError
from ottla.client.brokers import Brokers
from ottla.client.sender import TOPIC_REFUSALS, ColumnSender
from ottla.client.transaction import Transaction
from ottla.streams.settings.handlers import ExceptionHandlers
from ottla.streams.spark.connector.exactly_once import (
    Attempt,
    Share,
    abort_shares,
    commit_shares,
    write_share,
)
from ottla.streams.spark.connector.options import SparkOptions
from ottla.streams.spark.connector.refusals import Refusals
from ottla.streams.spark.connector.sink_counts import SinkCounts, append_counts
from ottla.streams.spark.connector.workers import freeze_objects_after_first_task
from ottla.wire.records.columnar_arrays import HEADERS_TYPE
from ottla.wire.records.columnar_encoding import Rows
from ottla.wire.records.columnar_partitioner import partitions_of
from ottla.wire.records.columnar_varints import Integers

Opened = Callable[[Iterator[pa.RecordBatch], Counter[int]], Iterator[pa.RecordBatch]]
"""Converts the batches that Spark passes; counts the records that it drops, by task."""

_KINDS: Mapping[str, tuple[str, ...]] = {
    "value": ("binary", "string"),
    "key": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
    "timestamp": ("timestamp",),
}
# Spark passes about 10 000 rows at a time; more rows make fuller batches.
_GATHER_BYTES = 4 * 1024 * 1024
# Local properties that Spark sets for its tasks; the job group of a streaming query is the id of
# its run.
_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"
_RUN_ID = "spark.jobGroup.id"


@dataclass
class Written(WriterCommitMessage):
    """The result of a task; `share` is its share of a batch that is written exactly once."""

    records: int
    share: Share | None = None
    dropped: SinkCounts = field(default_factory=SinkCounts)


class TaskWriter:
    """Writes the rows of one task; created in the driver, which rejects wrong columns.

    With `handlers` (which returns the application's exception handlers) rejected records are passed
    to them; otherwise a rejected record is an error.
    """

    def __init__(
        self,
        options: SparkOptions,
        schema: StructType,
        handlers: Callable[[], ExceptionHandlers] | None = None,
    ) -> None:
        self._options = options
        self._columns = _check_columns(options, schema)
        self._handlers = handlers
        # The driver rejects a missing address and wrong options of TLS and SASL, too.
        options.brokers().close()

    def gather(self, iterator: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the columns to be written, in larger tables."""
        return _gather(iterator, self._columns)

    def send(
        self,
        brokers: Brokers,
        tables: Iterator[pa.Table],
        transaction: Transaction | None = None,
        skipped: Counter[str] | None = None,
    ) -> int:
        """Send all rows; all in-sync replicas have acknowledged them on return. Returns their
        number.

        The number of rejected records that a handler skips is added to `skipped`, by topic.
        """
        refusals = None if self._handlers is None else Refusals(self._handlers())
        ask = None if refusals is None else refusals.ask
        with ColumnSender(brokers, self._options.send_settings, transaction, ask) as sender:
            router = _Router(sender, self._options, self._columns, refusals)
            for table in tables:
                router.send(table)
            sender.flush()
            letters = None if refusals is None else refusals.take_letters()
            if letters is not None:
                router.send(letters)
                sender.flush()
            if skipped is not None and refusals is not None:
                skipped.update(refusals.skipped)
            freeze_objects_after_first_task()
            return sender.records_sent


class BatchSink(DataSourceArrowWriter):
    """The writer of one batch."""

    def __init__(self, options: SparkOptions, schema: StructType) -> None:
        self._options = options
        self._writer = TaskWriter(options, schema)
        if options.is_exactly_once:
            raise ConfigError(
                "Option processingGuarantee=exactly_once is for streams: only the batches of a stream "
                "have numbers, by which a repeated batch is recognized."
            )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write all rows of a task; all in-sync replicas have acknowledged them on return."""
        with self._options.brokers() as brokers:
            return Written(self._writer.send(brokers, self._writer.gather(iterator)))


class StreamSink(DataSourceStreamArrowWriter):
    """The writer of a stream: every micro-batch runs `write` in its tasks, then `commit` in the
    driver.

    `opened` converts the batches that Spark passes to rows that `writer` writes. `counts_path` is a
    file of the driver for the number of dropped records (sink_counts.py).
    """

    def __init__(
        self,
        options: SparkOptions,
        writer: TaskWriter,
        opened: Opened | None = None,
        counts_path: str | None = None,
    ) -> None:
        self._options = options
        self._writer = writer
        self.opened = opened
        self._counts_path = counts_path

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write all rows of a task; with exactly_once they become visible in `commit`."""
        writer, dropped = self._writer, SinkCounts()
        opened = iterator if self.opened is None else self.opened(iterator, dropped.tasks)
        tables = writer.gather(opened)
        if not self._options.is_exactly_once:
            with self._patient_brokers() as brokers:
                records = writer.send(brokers, tables, skipped=dropped.topics)
                return Written(records, dropped=dropped)
        filled = (table for table in tables if table.num_rows)
        first = next(filled, None)
        with self._patient_brokers() as brokers:

            def send(transaction: Transaction) -> int:
                rows = itertools.chain([first], filled)
                return writer.send(brokers, rows, transaction, dropped.topics)

            share = write_share(
                brokers, _attempt(), None if first is None else send, self._options.transaction_ms
            )
        # Consume all rows even if they are written already: stages before this one update their
        # state.
        for _ in filled:
            continue
        return Written(share.records, share, dropped)

    def _patient_brokers(self) -> Brokers:
        """Return brokers that are retried for as long as a batch may take, so that a broker's
        restart does not end a stream.
        """
        return self._options.brokers(timeout_s=self._options.timeout_s, is_proven=True)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Make a batch visible; with at_least_once it is visible already."""
        shares = _shares(messages)
        if shares:
            with self._patient_brokers() as brokers:
                commit_shares(brokers, shares, self._options.transaction_ms)
        if self._counts_path is not None:
            written = (message for message in messages if isinstance(message, Written))
            append_counts(self._counts_path, (message.dropped for message in written))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Abort the tasks' transactions; with at_least_once their rows stay, and are written again."""
        shares = _shares(messages)
        if shares:
            # The next attempt aborts these transactions when it begins its own, so do not wait for
            # unreachable brokers.
            with self._options.brokers() as brokers:
                abort_shares(brokers, shares)


def _shares(messages: Sequence[WriterCommitMessage | None]) -> list[Share]:
    return [
        message.share
        for message in messages
        if isinstance(message, Written) and message.share is not None
    ]


def _attempt() -> Attempt:
    context = TaskContext.get()
    assert context is not None, "write runs in a task of Spark"
    query, run, batch = (context.getLocalProperty(name) for name in (_QUERY_ID, _RUN_ID, _BATCH_ID))
    if query is None or run is None or batch is None:
        raise ConfigError(
            "This version of Spark does not pass the ids of query, run and batch to its tasks: use at_least_once."
        )
    return Attempt(query, run, int(batch), context.partitionId())


def _check_columns(options: SparkOptions, schema: StructType) -> list[str]:
    """Return the columns of the data frame that are written; raise ConfigError if one is missing or
    of a wrong type.
    """
    kinds = {field.name: field.dataType.simpleString() for field in schema.fields}
    columns = ["value", "key", "partition", "headers"]
    columns += [] if "topic" in options else ["topic"]
    columns += ["timestamp"] if options.get("includeTimestamp", False) else []
    written = [name for name in columns if name in kinds]
    if "value" not in written:
        raise ConfigError("The data frame has no column value (binary or string) to write.")
    if "topic" in columns and "topic" not in written:
        raise ConfigError("Set the option topic, or add a column topic to the data frame.")
    if "timestamp" in columns and "timestamp" not in written:
        raise ConfigError(
            "Option includeTimestamp needs a column timestamp, which the data frame does not have."
        )
    for name in written:
        if kinds[name] not in _KINDS[name]:
            raise ConfigError(
                f"Column {name} is {kinds[name]}: it must be {' or '.join(_KINDS[name])}."
            )
    return written


def _gather(batches: Iterator[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.Table]:
    gathered: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        gathered.append(batch.select(columns))
        size += gathered[-1].nbytes
        if size >= _GATHER_BYTES:
            yield pa.Table.from_batches(gathered)
            gathered, size = [], 0
    if gathered:
        yield pa.Table.from_batches(gathered)


class _Router:
    """Determines the topic and partition of each row, and sends the rows of each partition
    together.
    """

    def __init__(
        self,
        sender: ColumnSender,
        options: SparkOptions,
        columns: Sequence[str],
        refusals: Refusals | None = None,
    ) -> None:
        self._sender = sender
        self._refusals = refusals
        self._topic: str | None = options.get("topic")
        self._columns = columns
        self._partition_counts: dict[str, int] = {}
        self._sent: set[str] = set()
        # Rows without a key stay in one partition for a while, as in Kafka's clients; each task
        # starts with another.
        context = TaskContext.get()
        self._sticky = 0 if context is None else context.partitionId()

    def send(self, table: pa.Table) -> None:
        """Send all rows."""
        if not table.num_rows:
            return
        rows = self._rows(table)
        named = self._column(table, "partition")
        self._sticky += 1
        if self._topic is not None:
            self._send_to(self._topic, rows, named)
            return
        topics = _whole(table.column("topic")).dictionary_encode()
        if topics.null_count:
            raise ConfigError("A row's topic is null: set the column topic in every row.")
        codes = topics.indices.to_numpy()
        for code, topic in enumerate(topics.dictionary.to_pylist()):
            chosen = np.flatnonzero(codes == code)
            part = _take(rows, chosen)
            self._send_to(topic, part, None if named is None else named.take(chosen))

    def _rows(self, table: pa.Table) -> Rows:
        keys, headers = self._column(table, "key"), self._column(table, "headers")
        timestamps = np.full(table.num_rows, time.time_ns() // 1_000_000, np.int64)
        times = self._column(table, "timestamp")
        if times is not None:
            milliseconds = pc.divide(times.cast(pa.int64()), 1000)
            timestamps = np.where(
                times.is_null(), timestamps, np.asarray(milliseconds.fill_null(0))
            )
        return Rows(
            _whole(table.column("value")).cast(pa.binary()),
            None if keys is None else keys.cast(pa.binary()),
            None if headers is None else headers.cast(HEADERS_TYPE),
            timestamps,
        )

    def _column(self, table: pa.Table, name: str) -> pa.Array | None:
        return _whole(table.column(name)) if name in self._columns else None

    def _send_to(self, topic: str, rows: Rows, named: pa.Array | None) -> None:
        refusals = self._refusals
        if refusals is None:
            self._send_parts(topic, rows, named)
            return
        refusal = refusals.of_topic(topic)
        try:
            if refusal is not None:
                raise refusal
            self._send_parts(topic, rows, named)
        except ApiError as error:
            # The error concerns the whole topic, and none of its rows have been sent.
            if error.code not in TOPIC_REFUSALS or topic in self._sent:
                raise
            refusals.ask(topic, rows, error)

    def _send_parts(self, topic: str, rows: Rows, named: pa.Array | None) -> None:
        partitions = self._partitions(topic, rows, named)
        # Small integers are sorted by counting. If all rows go to one partition they are in order
        # already.
        small = partitions.astype(np.uint8) if partitions.max() < 256 else partitions
        order = np.argsort(small, kind="stable")
        ordered = rows if partitions.min() == partitions.max() else _take(rows, order)
        numbers, starts = np.unique(partitions[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        self._sender.add(topic, numbers.tolist())
        self._sent.add(topic)
        for partition, start, end in zip(numbers.tolist(), starts.tolist(), ends, strict=True):
            self._sender.send(topic, partition, ordered.slice(start, end))

    def _partitions(self, topic: str, rows: Rows, named: pa.Array | None) -> Integers:
        count = self._partition_count(topic)
        sticky = self._sticky % count
        if rows.keys is None:
            partitions = np.full(len(rows.values), sticky, np.int64)
        else:
            partitions = partitions_of(rows.keys, count, sticky)
        if named is None:
            return partitions
        chosen = np.where(named.is_null(), partitions, np.asarray(named.fill_null(0), np.int64))
        if chosen.min() < 0 or chosen.max() >= count:
            wrong = chosen[(chosen < 0) | (chosen >= count)][0]
            raise ConfigError(
                f"Topic {topic!r} has no partition {wrong}: the last one is {count - 1}. Add partitions, "
                "or leave out the column partition to partition by key."
            )
        return chosen

    def _partition_count(self, topic: str) -> int:
        if topic not in self._partition_counts:
            self._partition_counts[topic] = self._sender.partition_count(topic)
        return self._partition_counts[topic]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return column.combine_chunks()


def _take(rows: Rows, indexes: Integers) -> Rows:
    chosen = pa.array(indexes)
    return Rows(
        rows.values.take(chosen),
        None if rows.keys is None else rows.keys.take(chosen),
        None if rows.headers is None else rows.headers.take(chosen),
        rows.timestamps[indexes],
    )
