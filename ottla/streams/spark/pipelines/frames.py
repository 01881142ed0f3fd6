"""Builds the data frames of a pipeline file: sources, then steps in the order of their
dependencies.

An error that Spark reports for an expression becomes a problem at its line in the file. Steps that
do not depend on a wrong step are still checked.
"""

import contextlib
import re
from collections.abc import Iterator

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from ottla.client.config.access import ClusterAccess
from ottla.streams.pipelines.checking import order_of_steps, references
from ottla.streams.pipelines.document import Text
from ottla.streams.pipelines.model import (
    ColumnStep,
    FileSource,
    GroupBy,
    Operation,
    Pipeline,
    Select,
    Source,
    SqlStep,
    Start,
    TopicSource,
    Watermark,
    Where,
    With,
)
from ottla.streams.pipelines.problems import Problems
from ottla.streams.spark.connector.options import cluster_options
from ottla.streams.spark.pipelines.source_values import ddl, rejected, shape

# Spark's parser and its analyser write the position differently.
_WHERE = re.compile(r"line (\d+),? (?:pos|position) (\d+)")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+")
# pyspark writes each of its exceptions to standard error, as JSON with a stack trace, even if it is
# caught.
_LOGGER = "SQLQueryContextLogger"


class Frames:
    """The data frames of a pipeline's sources and steps, by name, except those with problems.

    `group` is the consumer group that shows the progress of streams of topics.
    """

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        access: ClusterAccess,
        problems: Problems,
        group: str = "",
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._access = access
        self._problems = problems
        self._group = group
        self._frames: dict[str, DataFrame] = {}
        for source in pipeline.sources.values():
            with self.report_errors(Text("", source.position), f"source {source.name}"):
                self._add(source.name, self._source(source))
        for step in order_of_steps(pipeline):
            if all(self.get(name) is not None for name, _, _ in references(step)):
                frame = self._sql(step) if isinstance(step, SqlStep) else self._columns(step)
                if frame is not None:
                    self._add(step.name, frame)

    def get(self, name: str) -> DataFrame | None:
        """Return a table's frame; the name is case-insensitive."""
        return self._frames.get(name.lower())

    @contextlib.contextmanager
    def report_errors(self, text: Text, subject: str) -> Iterator[None]:
        """Record exceptions of Spark as problems with a text of the file."""
        logger = PySparkLogger.getLogger(_LOGGER)
        was_disabled, logger.disabled = logger.disabled, True
        try:
            yield
        except PySparkException as error:
            message, result = message_of(error), _WHERE.search(str(error))
            position = text.position
            if result is not None and text.text:
                position = text.at_line(int(result[1]), int(result[2]))
            self._problems.error(position, f"{subject}: {message}")
        finally:
            logger.disabled = was_disabled

    def _add(self, name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(name)
        self._frames[name.lower()] = frame

    def _source(self, source: Source) -> DataFrame:
        frame = self._topics(source) if isinstance(source, TopicSource) else self._files(source)
        if source.watermark is not None:
            with self.report_errors(source.watermark.column, f"source {source.name}"):
                frame = frame.withWatermark(source.watermark.column.text, source.watermark.delay)
        return frame

    def _topics(self, source: TopicSource) -> DataFrame:
        options = topic_options(source, self._access, self._group)
        opened = self._spark.read if source.is_static else self._spark.readStream
        return shape(opened.format("ottla").options(**options).load(), source)

    def rejected(self, source: TopicSource) -> DataFrame:
        """Return the records of a source whose values do not fit, as records of a topic."""
        options = topic_options(source, self._access, self._group) | {"includeHeaders": "true"}
        return rejected(self._spark.readStream.format("ottla").options(**options).load(), source)

    def _files(self, source: Source) -> DataFrame:
        assert isinstance(source, FileSource)
        opened = self._spark.read if source.is_static else self._spark.readStream
        options = {name: text.text for name, text in source.options.items()}
        if source.format == "csv":
            options = {"header": "true"} | options
            if source.schema is None:
                options = {"inferSchema": "true"} | options
        opened = opened.format(source.format).options(**options)
        if source.schema is not None:
            opened = opened.schema(ddl(source.schema))
        return opened.load(source.path.text)

    def _sql(self, step: SqlStep) -> DataFrame | None:
        with self.report_errors(step.sql, f"step {step.name}"):
            return self._spark.sql(step.sql.text)
        return None

    def _columns(self, step: ColumnStep) -> DataFrame | None:
        frame = self.get(step.origin.text)
        assert frame is not None
        for operation in step.operations:
            before = len(self._problems.in_order)
            changed = self._operate(frame, operation, f"step {step.name}")
            if changed is None or len(self._problems.in_order) > before:
                return None
            frame = changed
        return frame

    def _operate(self, frame: DataFrame, operation: Operation, subject: str) -> DataFrame | None:
        match operation:
            case Where():
                with self.report_errors(operation.condition, subject):
                    return frame.where(operation.condition.text)
            case Select():
                return self._each(frame, list(operation.columns), subject)
            case With():
                for name, text in operation.columns.items():
                    with self.report_errors(text, subject):
                        frame = frame.withColumn(name, sql.expr(text.text))
                return frame
            case Watermark():
                with self.report_errors(operation.column, subject):
                    return frame.withWatermark(operation.column.text, operation.delay)
            case GroupBy():
                return self._grouped(frame, operation, subject)
        return None

    def _each(self, frame: DataFrame, columns: list[Text], subject: str) -> DataFrame | None:
        """Select columns; each is first selected separately, so that an error is reported at its
        own line.
        """
        for text in columns:
            with self.report_errors(text, subject):
                frame.selectExpr(text.text)
        with contextlib.suppress(PySparkException):
            return frame.selectExpr(*(text.text for text in columns))
        return None

    def _grouped(self, frame: DataFrame, group: GroupBy, subject: str) -> DataFrame | None:
        if self._each(frame, [*group.columns], subject) is None and group.columns:
            return None
        keys = [sql.expr(text.text) for text in group.columns]
        window = group.window
        if window is not None:
            with self.report_errors(window.column, subject):
                frame.select(sql.expr(window.column.text))
            time_column = sql.expr(window.column.text)
            slide = window.slide or window.size
            keys.append(sql.window(time_column, window.size, slide).alias("window"))
        grouped = frame.groupBy(*keys)
        totals = []
        for name, text in group.aggregates.items():
            with self.report_errors(text, subject):
                grouped.agg(sql.expr(text.text).alias(name))
                totals.append(sql.expr(text.text).alias(name))
        if len(totals) != len(group.aggregates):
            return None
        result = grouped.agg(*totals)
        if window is None:
            return result
        # Add both ends of the window as columns; keep its struct for further windows.
        return result.withColumns(
            {"window_start": sql.col("window.start"), "window_end": sql.col("window.end")}
        )


def message_of(error: PySparkException) -> str:
    """Return the message of Spark's exception, without its plan and error codes."""
    text = str(error).strip()
    head = re.split(r"\n\s*\n|;\s*line \d+|;\n|\n== SQL|\n'", text, maxsplit=1)[0]
    head = re.sub(r"^\[[A-Z_.]+\]\s*", "", head)
    head = re.sub(r"\s*\(line \d+, pos \d+\)", "", head)
    return f"{' '.join(_SQLSTATE.sub('', head).split()).rstrip('.;')}."


def topic_options(source: TopicSource, access: ClusterAccess, group: str) -> dict[str, str]:
    """Return the options with which `format("ottla")` reads a source's topics."""
    options = cluster_options(access)
    if source.pattern is not None:
        options["subscribePattern"] = source.pattern.text
    else:
        options["subscribe"] = ",".join(topic.text for topic in source.topics)
    if not source.is_static:
        options |= _start_options(source.start)
        if group:
            options["kafka.group.id"] = group
        if source.max_records is not None:
            options["maxOffsetsPerTrigger"] = str(source.max_records)
    if source.headers:
        options["includeHeaders"] = "true"
    if not source.fails_on_data_loss:
        options["failOnDataLoss"] = "false"
    level = "read_uncommitted" if source.reads_uncommitted else "read_committed"
    return options | {"kafka.isolation.level": level}


def _start_options(start: Start) -> dict[str, str]:
    if start.time_ms is not None:
        strategy = {"startingOffsetsByTimestampStrategy": "latest"}
        return {"startingTimestamp": str(start.time_ms), **strategy}
    return {"startingOffsets": start.offsets or start.end}
