"""A topology that runs on Spark: started, waited for, stopped.

query = start(topology, spark, application_id="app", bootstrap="127.0.0.1:9092", checkpoint="state/app")
query.process_all_available()
query.stop()
"""

import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from ottla.streams.spark.connector.options import SparkOptions, Use
from ottla.streams.spark.connector.positions import Positions
from ottla.streams.spark.connector.ranges import Offsets, from_json
from ottla.streams.spark.layout.layout import Application
from ottla.streams.spark.query.checkpoint import Checkpoint
from ottla.streams.spark.query.compile import (
    Compiled,
    QuerySettings,
    compile_query,
    plan_queries,
    start_query,
)
from ottla.streams.spark.query.failures import QueryError, explain
from ottla.streams.spark.stages.dropped_counts import DroppedCounts
from ottla.streams.spark.stages.topology_source import CLOCK_TOPIC
from ottla.streams.task.task import TaskSettings
from ottla.streams.topology.topology import Topology

_POLL_S = 0.02


@dataclass
class _Running:
    """One of Spark's queries, and what it was made of."""

    compiled: Compiled
    query: StreamingQuery
    dropped: DroppedCounts


class StreamsQuery:
    """Topologies that run; a context manager that stops them."""

    def __init__(self, settings: QuerySettings) -> None:
        self._running: list[_Running] = []
        self._settings = settings

    def add(self, compiled: Compiled, query: StreamingQuery) -> None:
        """Take in a query that was started."""
        first = sum(len(each.compiled.layout.kinds) for each in self._running)
        counts = DroppedCounts(compiled.layout, first)
        self._running.append(_Running(compiled, query, counts))

    def __enter__(self) -> "StreamsQuery":
        """Return itself: it runs already."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

    @property
    def queries(self) -> list[StreamingQuery]:
        """Spark's own queries, one for each part of the topology that hangs together."""
        return [each.query for each in self._running]

    def dropped(self) -> dict[str, int]:
        """Return how many records each task dropped since the start, by Kafka's ids of tasks, such as 0_1.

        To be called once a second at least: Spark keeps the reports of 100 micro-batches.
        """
        found: dict[str, int] = {}
        for each in self._running:
            found |= each.dropped.take(each.query)
        return found

    @property
    def is_active(self) -> bool:
        """Whether all parts run."""
        return all(query.isActive for query in self.queries)

    @property
    def error(self) -> QueryError | None:
        """What stopped it, if something did."""
        found = (query.exception() for query in self.queries)
        text = next((str(each) for each in found if each is not None), None)
        return None if text is None else QueryError(explain(text))

    def process_all_available(self, timeout_s: float = 120.0) -> None:
        """Wait until all records that are there now, and all that come of them, have been taken.

        QueryError if it stops instead. With punctuators on the wall clock, which never end: TimeoutError
        after so many seconds.
        """
        deadline = time.monotonic() + timeout_s
        for each in self._running:
            with _told():
                if each.compiled.is_clocked:
                    self._await_ends(each, deadline)
                else:
                    each.query.processAllAvailable()

    def _await_ends(self, running: _Running, deadline: float) -> None:
        # A clock never stops: what counts is that a micro-batch ended where the topics end.
        options = {
            "bootstrap": self._settings.bootstrap,
            "subscribe": ",".join(running.compiled.topics),
        }
        with Positions(SparkOptions(options, Use.STREAM_READ)) as positions:
            while not self._is_at_end(running, positions):
                if not running.query.isActive:
                    raise self.error or QueryError("the query was stopped")
                if time.monotonic() > deadline:
                    raise TimeoutError("the query did not reach the end of its topics")
                time.sleep(_POLL_S)

    def _is_at_end(self, running: _Running, positions: Positions) -> bool:
        progress = running.query.lastProgress
        if progress is None:
            return False
        reached = end_offsets(progress)
        ends = positions.latest(positions.partitions())
        return all(reached.get(key, 0) >= end for key, end in ends.items())

    def await_termination(self, timeout_s: float | None = None) -> bool:
        """Wait until it stops; return whether it did. QueryError if an error stopped it."""
        with _told():
            return all(
                [bool(query.awaitTermination(cast(Any, timeout_s))) for query in self.queries]
            )

    def stop(self) -> None:
        """Stop all parts; idempotent. A micro-batch that runs is run again after the next start."""
        for query in self.queries:
            with contextlib.suppress(PySparkException):
                query.stop()


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Let Spark's exceptions tell users what is theirs."""
    try:
        yield
    except PySparkException as error:
        raise QueryError(explain(str(error))) from None


def end_offsets(progress: StreamingQueryProgress) -> Offsets:
    """Return where a micro-batch ended, by topic and partition; Spark counts envelopes, not records."""
    told: Any = progress.sources[0].endOffset
    offsets = from_json(json.loads(told) if isinstance(told, str) else told)
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
    """Start a topology; `task_settings` and `query_settings` say more, without the names given here.

    Stores are kept in the checkpoint; their changelogs are written only where `task_settings` say so, and created
    where `query_settings` ask for it.
    TopologyError or ConfigError where it cannot run, before anything starts.
    """
    told = task_settings or TaskSettings(application_id, writes_changelogs=False)
    settings = replace(
        query_settings or QuerySettings("", ""), bootstrap=bootstrap, checkpoint=checkpoint
    )
    # As with Kafka Streams, every tool sees the lag in the group that is named like the application.
    options = {"kafka.group.id": application_id, **settings.options}
    settings = replace(settings, options=options)
    told = replace(told, application_id=application_id)
    application = Application(topology, told, settings.keeps_changelogs)
    parts = plan_queries([application])
    names = [
        application_id if len(parts) == 1 else f"{application_id}-{n}" for n in range(len(parts))
    ]
    return _start(spark, list(zip(names, parts, strict=True)), settings)


def start_together(
    applications: Sequence[Application], spark: SparkSession, settings: QuerySettings
) -> StreamsQuery:
    """Start several applications in one query: they share its micro-batches and nothing else."""
    return _start(spark, [("together", list(applications))], settings)


def _start(
    spark: SparkSession, parts: Sequence[tuple[str, list[Application]]], settings: QuerySettings
) -> StreamsQuery:
    places = [f"{settings.checkpoint.rstrip('/')}/{number}" for number in range(len(parts))]
    compiled = [
        compile_query(applications, settings, _claimed(spark, place))
        for (_, applications), place in zip(parts, places, strict=True)
    ]
    found = StreamsQuery(settings)
    try:
        for (name, _), each, place in zip(parts, compiled, places, strict=True):
            query = start_query(spark, each, replace(settings, checkpoint=place), name)
            found.add(each, query)
    except BaseException:
        found.stop()
        raise
    return found


def _claimed(spark: SparkSession, place: str) -> list[int]:
    # Other sessions have no file system here; they are refused later, with what to do.
    return Checkpoint(spark, place).partitions() if isinstance(spark, SparkSession) else []
