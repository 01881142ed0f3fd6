"""Runs a pipeline file on Spark: one query for each sink, monitored together.

checked = check(Path("flights.yaml").read_text())
settings = RunSettings("127.0.0.1:9092", "checkpoints/flights")
with start(checked.pipeline, spark, settings) as run:
    run.await_termination()
"""

import contextlib
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from ottla.base.errors import ConfigError
from ottla.client.config.access import ClusterAccess
from ottla.streams.application.progress import Progress
from ottla.streams.model.errors import EngineBusyError
from ottla.streams.pipelines.document import Text
from ottla.streams.pipelines.model import (
    JdbcSink,
    MirrorSink,
    Pipeline,
    Sink,
    TopicSink,
    TopicSource,
)
from ottla.streams.pipelines.problems import Problem, Problems
from ottla.streams.spark.connector.ranges import Offsets
from ottla.streams.spark.pipelines.frames import Frames
from ottla.streams.spark.pipelines.jdbc import password
from ottla.streams.spark.pipelines.mirror import Mirror, mirrored
from ottla.streams.spark.pipelines.progress import batch_in_progress, check_progress
from ottla.streams.spark.pipelines.sinks import SinkSettings, access_of, prepare, start_sink
from ottla.streams.spark.pipelines.source_values import BAD_RECORDS
from ottla.streams.spark.query.failures import QueryError, explain, query_error
from ottla.streams.spark.query.folders import HadoopFolder
from ottla.streams.spark.query.reports import progress_of, total

_POLL_S = 0.2
_TRANSLATION_S = 10.0
# How often a query is started again because its workers did not start in time.
_RETRIES = 3
_log = logging.getLogger(__name__)
_BAD_RECORD = re.compile(
    # The plan in another error has the parts of the sentence, without a number.
    r"source \w+: the value of \S+ at offset \d+ cannot be read: "
    r".*(?: or a topic for them|row)\."
)


@dataclass(frozen=True)
class RunSettings:
    """The bootstrap servers, the checkpoint folder, and if the run stops at the current end of its
    input.
    """

    bootstrap: str
    checkpoint: str
    once: bool = False
    security: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def access(self) -> ClusterAccess:
        """The bootstrap servers, with the options of TLS and SASL."""
        return ClusterAccess(self.bootstrap, self.security)


@dataclass
class SinkRun:
    """The query of a sink; `rows` counts the rows it has read, `batches` its micro-batches since
    the start.
    """

    sink: Sink
    start: Callable[[], StreamingQuery]
    """Starts the query, which resumes from its checkpoint."""
    mirror: Mirror | None = None
    batch_in_progress: Callable[[], str] = str
    """Returns a sentence with the records of the batch that failed."""
    rows: int = 0
    batches: int = 0
    bad_by_source: Counter[str] = field(default_factory=Counter)
    """The number of bad records that were left out, by source."""
    batch_ended_ms: int = 0
    """When the last micro-batch with records ended; 0 before it."""
    translated: dict[str, dict[int, int]] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    _seen: int = -1
    _firsts: list[Offsets] = field(default_factory=list)
    _retries: int = 0

    def __post_init__(self) -> None:
        self.query = self.start()

    def retry(self, failure: str) -> bool:
        """Start a query again whose workers did not start in time; return False for other failures,
        and after a few retries.
        """
        error = query_error(failure)
        if not isinstance(error, EngineBusyError) or self._retries >= _RETRIES:
            return False
        self._retries += 1
        _log.warning("sink %s: restarting the query after: %s", self.sink.name, error)
        self.query = self.start()
        return True

    @property
    def bad_records(self) -> int:
        """The number of bad records that were left out."""
        return self.bad_by_source.total()

    def refresh(self) -> None:
        """Update the counts with the micro-batches that have ended since the last call."""
        for progress in self.query.recentProgress:
            if progress.batchId > self._seen and progress.numInputRows:
                self._seen = progress.batchId
                self.batches += 1
                self.rows += progress.numInputRows
                self.batch_ended_ms = _ended_ms(progress)
                self._count_bad_records(progress)
        last = self.query.lastProgress
        if last is not None:
            # Files have rows but no offsets.
            self.progress = replace(progress_of(last, self._firsts), records=self.rows)

    def _count_bad_records(self, progress: StreamingQueryProgress) -> None:
        for name, row in progress.observedMetrics.items():
            count = row["records"] if name.startswith(BAD_RECORDS) else 0
            if count:
                self.bad_by_source[name.removeprefix(BAD_RECORDS)] += count
                _log.warning("sink %s: left out %d %s", self.sink.name, count, name)

    def translate(self) -> None:
        """Translate the offsets of a mirror's consumer groups."""
        if self.mirror is not None and isinstance(self.sink, MirrorSink):
            for group in self.sink.groups:
                self.translated[group.text] = self.mirror.translate(group.text)


def _ended_ms(progress: StreamingQueryProgress) -> int:
    """Return the end of a micro-batch, whose report has its beginning as ISO 8601 in UTC."""
    began = datetime.fromisoformat(progress.timestamp)
    return int(began.timestamp() * 1000) + progress.batchDuration


class PipelineRun:
    """The queries of a pipeline; a context manager that stops them."""

    def __init__(self) -> None:
        self.sinks: dict[str, SinkRun] = {}

    def __enter__(self) -> "PipelineRun":
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

    def progress(self) -> Progress:
        """Return the total progress of all queries."""
        return total(sink.progress for sink in self.sinks.values())

    def await_termination(self, timeout_s: float | None = None) -> bool:
        """Wait until all queries have stopped; return True if they have.

        If one fails, the others are stopped, and QueryError names its sink.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        next_translation = time.monotonic() + _TRANSLATION_S
        while not self._has_ended():
            if time.monotonic() >= next_translation:
                self._translate()
                next_translation = time.monotonic() + _TRANSLATION_S
            if deadline is not None and time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        self._translate()
        return True

    def _has_ended(self) -> bool:
        # Before the failures: a query that fails in between is reported by the next call.
        has_ended = not any(sink.query.isActive for sink in self.sinks.values())
        for name, running in self.sinks.items():
            running.refresh()
            failure = running.query.exception() if not running.query.isActive else None
            if failure is not None and running.retry(str(failure)):
                has_ended = False
            elif failure is not None:
                self.stop()
                raise QueryError(f"Sink {name}: {_explained(running, str(failure))}")
        return has_ended

    def _translate(self) -> None:
        for sink in self.sinks.values():
            sink.translate()

    def stop(self) -> None:
        """Stop all queries; idempotent. A micro-batch that is interrupted is repeated after the
        next start.
        """
        for sink in self.sinks.values():
            with contextlib.suppress(PySparkException):
                sink.query.stop()


def _explained(running: SinkRun, text: str) -> str:
    """Return the sentence about a bad record; otherwise the part of Spark's exception that users
    need, and the records of the batch.
    """
    bad = _BAD_RECORD.search(text)
    if bad is not None:
        return bad[0]
    return "\n".join(filter(None, (explain(text), running.batch_in_progress())))


def _place(spark: SparkSession, settings: SinkSettings, name: str) -> Callable[[], str]:
    return lambda: batch_in_progress(HadoopFolder(spark, f"{settings.checkpoint}/{name}"))


def check_deep(pipeline: Pipeline, spark: SparkSession, access: ClusterAccess) -> list[Problem]:
    """Return the problems that Spark finds in a pipeline: SQL, columns and types. Reads no record."""
    problems = Problems()
    frames = Frames(spark, pipeline, access, problems)
    for sink in pipeline.sinks.values():
        _check_sink(frames, sink)
    return problems.in_order


def _check_sink(frames: Frames, sink: Sink) -> None:
    frame = frames.get(sink.origin.text)
    if frame is None:
        return
    text = getattr(sink, "key", None) or getattr(sink, "time", None) or sink.origin
    texts = text if isinstance(text, tuple) else (text,)
    for expression in texts:
        with frames.report_errors(expression, f"sink {sink.name}"):
            if isinstance(sink, JdbcSink) and sink.key:
                frame.select(expression.text)
            else:
                prepare(frame, sink)


def plans(pipeline: Pipeline, spark: SparkSession, access: ClusterAccess) -> dict[str, str]:
    """Return Spark's plan of each sink, as text."""
    _check(pipeline, spark, access)
    frames = Frames(spark, pipeline, access, Problems())
    results = {}
    for name, sink in pipeline.sinks.items():
        frame = frames.get(sink.origin.text)
        if frame is not None and not isinstance(sink, MirrorSink):
            execution = prepare(frame, sink)._jdf.queryExecution()
            # As `explain` of a data frame does: only this also plans streams.
            jvm: Any = spark._jvm
            results[name] = str(jvm.PythonSQLUtils.explainString(execution, "simple")).strip()
    return results


def start(pipeline: Pipeline, spark: SparkSession, settings: RunSettings) -> PipelineRun:
    """Start every sink's query; raise ConfigError with all problems that Spark finds, before any
    starts.
    """
    check_passwords(pipeline, settings.access)
    _check(pipeline, spark, settings.access)
    run = PipelineRun()
    sink_settings = SinkSettings(
        settings.access, settings.checkpoint.rstrip("/"), pipeline.trigger, settings.once
    )
    checkpoints = {
        name: check_progress(spark, sink, sink_settings) for name, sink in pipeline.sinks.items()
    }
    try:
        for name, sink in pipeline.sinks.items():
            group = f"{pipeline.name}-{name}"
            if isinstance(sink, MirrorSink):
                is_new = checkpoints[name].is_new
                frame, mirror = _mirror(pipeline, spark, sink, settings, group, is_new=is_new)
            else:
                frame, mirror = _frame(pipeline, spark, sink, settings, group), None
            begin = partial(start_sink, frame, sink, group, sink_settings)
            run.sinks[name] = SinkRun(sink, begin, mirror, _place(spark, sink_settings, name))
        for source in pipeline.sources.values():
            if isinstance(source, TopicSource) and source.bad_topic is not None:
                dead_letters = _dead_letters(source, source.bad_topic)
                group = f"{pipeline.name}-{dead_letters.name}"
                frames = Frames(spark, pipeline, settings.access, Problems(), group)
                rejected = frames.rejected(source)
                begin = partial(start_sink, rejected, dead_letters, group, sink_settings)
                place = _place(spark, sink_settings, dead_letters.name)
                run.sinks[dead_letters.name] = SinkRun(dead_letters, begin, None, place)
    except BaseException:
        run.stop()
        raise
    return run


def check_passwords(pipeline: Pipeline, access: ClusterAccess) -> None:
    """Raise ConfigError if a variable or a file with a password of a sink is missing.

    Needs no Spark, which takes seconds to start.
    """
    for sink in pipeline.sinks.values():
        if isinstance(sink, JdbcSink) and sink.password_variable:
            password(sink)
        if isinstance(sink, TopicSink | MirrorSink):
            access_of(sink, access)


def _dead_letters(source: TopicSource, topic: Text) -> TopicSink:
    """Return the sink of a source's bad records; no sink of a file has such a name."""
    name = f"{source.name}-bad-records"
    origin = Text(source.name, source.position)
    return TopicSink(
        name=name, position=source.position, origin=origin, topic=topic, format="record"
    )


def _check(pipeline: Pipeline, spark: SparkSession, access: ClusterAccess) -> None:
    result = check_deep(pipeline, spark, access)
    if result:
        raise ConfigError("\n".join(map(str, result)))


def _frame(
    pipeline: Pipeline, spark: SparkSession, sink: Sink, settings: RunSettings, group: str
) -> DataFrame:
    """Return the frame that a sink writes; its sources show their progress as a group of their own."""
    frames = Frames(spark, pipeline, settings.access, Problems(), group)
    frame = frames.get(sink.origin.text)
    assert frame is not None
    return frame


def _mirror(
    pipeline: Pipeline,
    spark: SparkSession,
    sink: MirrorSink,
    settings: RunSettings,
    group: str,
    *,
    is_new: bool,
) -> tuple[DataFrame, Mirror]:
    """Return the records that a mirror writes; with a new checkpoint, those after its last points."""
    source = pipeline.sources[sink.origin.text]
    assert isinstance(source, TopicSource)
    mirror = Mirror.of(source, sink, settings.access)
    mirror.prepare()
    starts = mirror.next_offsets(is_new=is_new)
    return mirrored(spark, source, mirror, group, starts), mirror
