"""Start, wait for and stop a topology on Spark.

settings = {"bootstrap": "127.0.0.1:9092", "checkpoint": "state/app"}
query = start(topology, spark, application_id="app", **settings)
query.process_all_available()
query.stop()
"""

import contextlib
import json
import shutil
import tempfile
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from ottla.client.admin.offsets import PROGRESS, committed_offsets
from ottla.streams.layout.layout import Application
from ottla.streams.spark.connector.options import SparkOptions, Use
from ottla.streams.spark.connector.positions import Positions
from ottla.streams.spark.connector.ranges import Offsets, from_json
from ottla.streams.spark.query.checkpoint import Checkpoint
from ottla.streams.spark.query.compile import (
    Compiled,
    QuerySettings,
    compile_query,
    end_options,
    plan_queries,
    start_query,
)
from ottla.streams.spark.query.failures import QueryError, query_error
from ottla.streams.spark.stages.dropped_counts import DroppedCounts
from ottla.streams.spark.stages.topology_source import CLOCK_TOPIC
from ottla.streams.task.task import TaskSettings
from ottla.streams.topology.topology import Topology

_POLL_S = 0.02


@dataclass
class _Running:
    """One of Spark's queries, what it was compiled from, and its counts."""

    compiled: Compiled
    query: StreamingQuery
    dropped: DroppedCounts
    positions: Positions
    """Looks up the ends of the topics."""


class StreamsQuery:
    """The running queries of topologies; a context manager that stops them."""

    def __init__(self, settings: QuerySettings) -> None:
        self._running: list[_Running] = []
        self._settings = settings
        self._folder = Path(tempfile.mkdtemp(prefix="ottla-counts-"))
        self._remove_folder = weakref.finalize(self, shutil.rmtree, self._folder, True)
        # Connections are for one thread.
        self._asking = threading.Lock()

    def next_sink_counts_path(self) -> str:
        """Return the path of the file with the counts of the sink of the next query to add."""
        return str(self._folder / f"{len(self._running)}.json")

    def add(self, compiled: Compiled, query: StreamingQuery) -> None:
        """Add a query that has been started."""
        path = self.next_sink_counts_path()
        first = sum(len(running.compiled.layout.sub_topologies) for running in self._running)
        counts = DroppedCounts(compiled.layout, first, path)
        options = SparkOptions(end_options(compiled, self._settings), Use.BATCH_READ)
        self._running.append(_Running(compiled, query, counts, Positions(options)))

    def __enter__(self) -> "StreamsQuery":
        """Return this object: its queries are running already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop all queries."""
        self.stop()

    @property
    def queries(self) -> list[StreamingQuery]:
        """Spark's own queries, one for each connected part of the topology."""
        return [running.query for running in self._running]

    def dropped(self) -> dict[str, int]:
        """Return the number of records that each task has dropped since the start, by Kafka's task
        ids, such as 0_1.

        Call it at least once a second: Spark keeps the reports of the last 100 micro-batches.
        """
        results: dict[str, int] = {}
        for running in self._running:
            results |= running.dropped.take(running.query)
        return results

    def misplaced_keys(self) -> dict[str, int]:
        """Return the number of misplaced keys of each topic, as of the last call of `dropped`.

        Only some keys of each batch are checked; see docs/partitioning.md.
        """
        counts: Counter[str] = Counter()
        for running in self._running:
            counts += running.dropped.misplaced
        return dict(sorted(counts.items()))

    @property
    def is_active(self) -> bool:
        """True if all queries are running."""
        return all(query.isActive for query in self.queries)

    @property
    def error(self) -> QueryError | None:
        """The error that stopped a query; None if none has failed."""
        result = (query.exception() for query in self.queries)
        text = next((str(error) for error in result if error is not None), None)
        return None if text is None else query_error(text)

    def process_all_available(self, timeout_s: float = 120.0) -> None:
        """Wait until all records that exist now, and all records that result from them, are
        processed.

        Raises QueryError if a query stops instead. Queries with wall-clock punctuators never run
        out of input: for them the wait ends when the topics' ends are reached, and raises
        TimeoutError after `timeout_s` seconds.
        """
        deadline = time.monotonic() + timeout_s
        for running in self._running:
            with _readable_errors():
                if running.compiled.is_clocked:
                    self._await_ends(running, deadline)
                else:
                    running.query.processAllAvailable()

    def _await_ends(self, running: _Running, deadline: float) -> None:
        # A clock always has new input: wait until a micro-batch has ended at the ends of the
        # topics.
        while not self._are_at_end([running]):
            if not running.query.isActive:
                raise self.error or QueryError("the query was stopped")
            if time.monotonic() > deadline:
                raise TimeoutError("the query did not reach the end of its topics")
            time.sleep(_POLL_S)

    def is_idle(self) -> bool:
        """Return True if all records that exist now were read and have had their effects.

        The records of internal topics are included. Callbacks on the wall clock may still write
        records later. Raises the errors of Positions.
        """
        return self.is_active and self._are_at_end(self._running)

    def _are_at_end(self, queries: Sequence[_Running]) -> bool:
        # First the positions, then the ends: a micro-batch that is still running has read records
        # beyond the positions, and a completed one has written its records before the ends.
        reached = [self._reached(running) for running in queries]
        with self._asking:
            ends = [running.positions.latest(running.positions.partitions()) for running in queries]
        return all(
            offsets.get(key, 0) >= end
            for offsets, named in zip(reached, ends, strict=True)
            for key, end in named.items()
        )

    def _reached(self, running: _Running) -> Offsets:
        """Return the offsets up to which the completed micro-batches have read."""
        progress = running.query.lastProgress
        if progress is not None:
            return end_offsets(progress)
        # There was no micro-batch since the start. Before the planner waits for data, it commits
        # where it begins.
        group_id = self._settings.options.get("kafka.group.id")
        status = running.query.status
        is_waiting = not status["isDataAvailable"] and status["message"].startswith("Waiting")
        if not group_id or not is_waiting:
            return {}
        with self._settings.access.brokers(client_id="ottla-streams") as brokers:
            committed = committed_offsets(brokers, group_id, require_stable=False)
        return {key: row.offset for key, row in committed.items() if row.metadata == PROGRESS}

    def await_termination(self, timeout_s: float | None = None) -> bool:
        """Wait until all queries stop, and return True if they did; raise QueryError if an error
        stopped one.

        `timeout_s` is in seconds for each query; without it there is no limit.
        """
        with _readable_errors():
            return all(
                [bool(query.awaitTermination(cast(Any, timeout_s))) for query in self.queries]
            )

    def stop(self) -> None:
        """Stop all queries; idempotent. A micro-batch that is interrupted is repeated after the
        next start.
        """
        for query in self.queries:
            with contextlib.suppress(PySparkException):
                query.stop()
        for running in self._running:
            running.dropped.take_sink_counts()
            running.positions.close()
        self._remove_folder()


@contextlib.contextmanager
def _readable_errors() -> Iterator[None]:
    """Raise Spark's exceptions as QueryError, with a message for users."""
    try:
        yield
    except PySparkException as error:
        raise query_error(str(error)) from None


def end_offsets(progress: StreamingQueryProgress) -> Offsets:
    """Return the end offset of each partition in a micro-batch; Spark itself counts envelopes, not
    records.
    """
    end: Any = progress.sources[0].endOffset
    offsets = from_json(json.loads(end) if isinstance(end, str) else end)
    offsets.pop((CLOCK_TOPIC, 0), None)
    return offsets


def start(
    topology: Topology,
    spark: SparkSession,
    *,
    application_id: str,
    bootstrap: str,
    checkpoint: str,
    task_settings: TaskSettings | None = None,
    query_settings: QuerySettings | None = None,
) -> StreamsQuery:
    """Start a topology; the named arguments override `task_settings` and `query_settings`.

    Stores are kept in the checkpoint. Changelogs are written only if `task_settings` enable them,
    and created only if `query_settings` enable that. Raises TopologyError or ConfigError if the
    topology cannot run, before anything starts.
    """
    tasks = task_settings or TaskSettings(application_id, writes_changelogs=False)
    settings = replace(
        query_settings or QuerySettings("", ""), bootstrap=bootstrap, checkpoint=checkpoint
    )
    # As in Kafka Streams, the group is named like the application, so every tool can show its lag.
    options = {"kafka.group.id": application_id, **settings.options}
    settings = replace(settings, options=options)
    tasks = replace(tasks, application_id=application_id)
    application = Application(topology, tasks, settings.keeps_changelogs)
    parts = plan_queries([application])
    names = [
        application_id if len(parts) == 1 else f"{application_id}-{n}" for n in range(len(parts))
    ]
    return _start(spark, list(zip(names, parts, strict=True)), settings)


def start_together(
    applications: Sequence[Application], spark: SparkSession, settings: QuerySettings
) -> StreamsQuery:
    """Start several applications in one query; they share its micro-batches and nothing else."""
    return _start(spark, [("together", list(applications))], settings)


def _start(
    spark: SparkSession, parts: Sequence[tuple[str, list[Application]]], settings: QuerySettings
) -> StreamsQuery:
    checkpoints = [f"{settings.checkpoint.rstrip('/')}/{number}" for number in range(len(parts))]
    compiled = [
        compile_query(applications, settings, _claimed(spark, checkpoint))
        for (_, applications), checkpoint in zip(parts, checkpoints, strict=True)
    ]
    result = StreamsQuery(settings)
    try:
        for (name, _), part, checkpoint in zip(parts, compiled, checkpoints, strict=True):
            path = result.next_sink_counts_path()
            query = start_query(spark, part, replace(settings, checkpoint=checkpoint), name, path)
            result.add(part, query)
    except BaseException:
        result.stop()
        raise
    return result


def _claimed(spark: SparkSession, checkpoint: str) -> list[int]:
    # A Spark Connect session has no file system here; start_query rejects it with a message.
    return Checkpoint(spark, checkpoint).partitions() if isinstance(spark, SparkSession) else []
