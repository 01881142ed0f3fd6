"""The content of a pipeline file as frozen values: sources, steps, sinks. Independent of Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.streams.pipelines.document import Text
from ottla.streams.pipelines.problems import FilePosition

# The columns of every record besides its value; the underscore distinguishes them from fields of
# the value.
RECORD_COLUMNS = {
    "_key": "string",
    "_topic": "string",
    "_partition": "int",
    "_offset": "bigint",
    "_timestamp": "timestamp",
}
HEADERS_COLUMN = "_headers"
FILE_FORMATS = ("parquet", "json", "csv", "text")
TABLE_FORMATS = ("delta", "iceberg")
"""Formats of files that are tables, and need a package (table_formats.py)."""


@dataclass(frozen=True, kw_only=True)
class Security:
    """The options of Kafka's clients for TLS and SASL, without secrets.

    `config` is a properties file with more of them, `password_variable` the environment variable
    with the password; empty if not set.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    config: str = ""
    password_variable: str = ""


@dataclass(frozen=True, kw_only=True)
class Watermark:
    """The maximum lateness of rows, by a column of event time."""

    column: Text
    delay: str


@dataclass(frozen=True, kw_only=True)
class Source:
    """A table that steps and sinks read; with `is_static` it is read once, when the pipeline
    starts.

    `schema` maps columns to Spark's types; None if the file or the format defines it.
    """

    name: str
    position: FilePosition
    is_static: bool = False
    schema: Mapping[str, str] | None = None
    watermark: Watermark | None = None


@dataclass(frozen=True, kw_only=True)
class Avro:
    """The Avro format of values: their schema as text, and the registry with schemas; empty if not
    set.
    """

    schema: str = ""
    registry: str = ""


@dataclass(frozen=True, kw_only=True)
class Start:
    """The position at which a source starts: earliest, latest, a time (ms), or offsets as JSON.

    The first one that is set takes precedence: `time_ms`, `offsets`, `end`.
    """

    end: str = "earliest"
    offsets: str = ""
    time_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class TopicSource(Source):
    """Records of topics, or of topics whose name matches a pattern."""

    topics: tuple[Text, ...]
    pattern: Text | None = None
    format: str = "string"
    avro: Avro | None = None
    start: Start = field(default_factory=Start)
    max_records: int | None = None
    headers: bool = False
    tombstones: str = "row"
    """The reaction to records without a value: row (of NULLs), skip or fail."""
    bad_records: str = "fail"
    """The reaction to values that do not fit: fail, skip, or topic."""
    bad_topic: Text | None = None
    """The dead-letter topic, if `bad_records` is topic."""
    reads_uncommitted: bool = False
    fails_on_data_loss: bool = True
    """True if the loss of unread records ends the query."""


@dataclass(frozen=True, kw_only=True)
class FileSource(Source):
    """Files of a folder; new ones are read as they arrive, unless the source is static."""

    path: Text
    format: str
    options: Mapping[str, Text] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Where:
    """Filters rows."""

    condition: Text


@dataclass(frozen=True, kw_only=True)
class Select:
    """Selects and computes columns: `origin`, `dep_delay / 60 AS hours`."""

    columns: tuple[Text, ...]


@dataclass(frozen=True, kw_only=True)
class With:
    """Adds columns or replaces them."""

    columns: Mapping[str, Text]


@dataclass(frozen=True, kw_only=True)
class Window:
    """Groups by windows of event time; the windows are hopping if `slide` is shorter than `size`."""

    column: Text
    size: str
    slide: str = ""


@dataclass(frozen=True, kw_only=True)
class GroupBy:
    """Aggregates by columns, and by windows of time."""

    columns: tuple[Text, ...]
    aggregates: Mapping[str, Text]
    window: Window | None = None


Operation = Where | Select | With | GroupBy | Watermark


@dataclass(frozen=True, kw_only=True)
class SqlStep:
    """A SQL query over sources and other steps."""

    name: str
    position: FilePosition
    sql: Text


@dataclass(frozen=True, kw_only=True)
class ColumnStep:
    """A sequence of operations on one table."""

    name: str
    position: FilePosition
    origin: Text
    operations: tuple[Operation, ...]


Step = SqlStep | ColumnStep


@dataclass(frozen=True, kw_only=True)
class Sink:
    """The destination of a table's rows; each sink is a separate query with a separate checkpoint."""

    name: str
    position: FilePosition
    origin: Text
    mode: str = "append"


@dataclass(frozen=True, kw_only=True)
class TopicSink(Sink):
    """Records of a topic. With `format` json, the value is an object of all columns without another
    use.
    """

    topic: Text
    bootstrap: str = ""
    security: Security | None = None
    format: str = "json"
    avro: Avro | None = None
    key: Text | None = None
    compression: str = ""


@dataclass(frozen=True, kw_only=True)
class MirrorSink(Sink):
    """A topic copied to another, record by record and partition by partition, with offset
    translation.

    `groups` are the consumer groups whose offsets are translated; `offsets_topic` stores the
    mapping.
    """

    topic: Text
    bootstrap: str = ""
    security: Security | None = None
    groups: tuple[Text, ...] = ()
    offsets_topic: str = ""


@dataclass(frozen=True, kw_only=True)
class FileSink(Sink):
    """Files in a folder, with subfolders for the values of `partition_by`, or each `by` of `time`."""

    path: Text
    format: str
    partition_by: tuple[Text, ...] = ()
    time: Text | None = None
    by: str = ""
    options: Mapping[str, Text] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JdbcSink(Sink):
    """Rows of a database table; with a `key`, a row replaces the one with the same key."""

    url: Text
    table: Text
    key: tuple[Text, ...] = ()
    latest_by: Text | None = None
    user: str = ""
    password_variable: str = ""
    driver: str = ""


@dataclass(frozen=True, kw_only=True)
class ConsoleSink(Sink):
    """Rows printed to standard output, for experiments."""

    rows: int = 20


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """A whole file. `trigger` is Spark's interval between micro-batches; empty means without a
    pause.

    `declared` are the names of all sources and steps, including those that could not be read.
    """

    name: str
    bootstrap: str
    checkpoint: str
    trigger: str
    sources: Mapping[str, Source]
    steps: Mapping[str, Step]
    sinks: Mapping[str, Sink]
    security: Security | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    declared: frozenset[str] = frozenset()

    def tables(self) -> dict[str, Any]:
        """Return all sources and steps."""
        return {**self.sources, **self.steps}
