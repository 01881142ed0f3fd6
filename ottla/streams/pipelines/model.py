"""What a pipeline file says, as frozen values: sources, steps, sinks. No Spark in here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.streams.pipelines.document import Text
from ottla.streams.pipelines.problems import Place

# What every record has beside its value; the underscore keeps it apart from the fields of the value.
RECORD_COLUMNS = {
    "_key": "string",
    "_topic": "string",
    "_partition": "int",
    "_offset": "bigint",
    "_timestamp": "timestamp",
}
HEADERS_COLUMN = "_headers"
FILE_FORMATS = ("parquet", "json", "csv")


@dataclass(frozen=True, kw_only=True)
class Watermark:
    """How late rows may be, by a column of event time."""

    column: Text
    delay: str


@dataclass(frozen=True, kw_only=True)
class Source:
    """A table that steps and sinks read: `is_static` where it is read once, when the pipeline starts.

    `schema` maps columns to Spark's types, None where the file or the format says it.
    """

    name: str
    place: Place
    is_static: bool = False
    schema: Mapping[str, str] | None = None
    watermark: Watermark | None = None


@dataclass(frozen=True, kw_only=True)
class Avro:
    """How Avro values are written: their schema as text, and the registry that has schemas; empty where not said."""

    schema: str = ""
    registry: str = ""


@dataclass(frozen=True, kw_only=True)
class TopicSource(Source):
    """Records of topics, or of topics whose name matches a pattern."""

    topics: tuple[Text, ...]
    pattern: Text | None = None
    format: str = "string"
    avro: Avro | None = None
    start: str = "earliest"
    max_records: int | None = None
    headers: bool = False
    skips_bad_records: bool = False
    reads_uncommitted: bool = False


@dataclass(frozen=True, kw_only=True)
class FileSource(Source):
    """Files of a folder; new ones are read as they come unless it is static."""

    path: Text
    format: str
    options: Mapping[str, Text] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Where:
    """Keeps rows."""

    condition: Text


@dataclass(frozen=True, kw_only=True)
class Select:
    """Chooses and computes columns: `origin`, `dep_delay / 60 AS hours`."""

    columns: tuple[Text, ...]


@dataclass(frozen=True, kw_only=True)
class With:
    """Adds columns or replaces them."""

    columns: Mapping[str, Text]


@dataclass(frozen=True, kw_only=True)
class Window:
    """Groups by windows of event time; hopping where `slide` is shorter than `size`."""

    column: Text
    size: str
    slide: str = ""


@dataclass(frozen=True, kw_only=True)
class GroupBy:
    """Totals by columns, and by windows of time."""

    columns: tuple[Text, ...]
    aggregates: Mapping[str, Text]
    window: Window | None = None


Operation = Where | Select | With | GroupBy | Watermark


@dataclass(frozen=True, kw_only=True)
class SqlStep:
    """A query in SQL over sources and other steps."""

    name: str
    place: Place
    sql: Text


@dataclass(frozen=True, kw_only=True)
class ColumnStep:
    """Operations on one table, one after the other."""

    name: str
    place: Place
    origin: Text
    operations: tuple[Operation, ...]


Step = SqlStep | ColumnStep


@dataclass(frozen=True, kw_only=True)
class Sink:
    """Where rows of a table go; each sink is a query of its own with a checkpoint of its own."""

    name: str
    place: Place
    origin: Text
    mode: str = "append"


@dataclass(frozen=True, kw_only=True)
class TopicSink(Sink):
    """Records of a topic: `format` json makes an object of all columns that are not otherwise used."""

    topic: Text
    bootstrap: str = ""
    format: str = "json"
    avro: Avro | None = None
    key: Text | None = None
    compression: str = ""


@dataclass(frozen=True, kw_only=True)
class MirrorSink(Sink):
    """A topic copied to another, record by record and partition by partition, with offsets translated.

    `groups` are the consumer groups whose offsets follow; `offsets_topic` holds the mapping.
    """

    topic: Text
    bootstrap: str = ""
    groups: tuple[Text, ...] = ()
    offsets_topic: str = ""


@dataclass(frozen=True, kw_only=True)
class FileSink(Sink):
    """Files below a folder, in folders of their own for each value of `partition_by`, or each `by` of `time`."""

    path: Text
    format: str
    partition_by: tuple[Text, ...] = ()
    time: Text | None = None
    by: str = ""
    options: Mapping[str, Text] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JdbcSink(Sink):
    """Rows of a database's table; with a `key`, a row takes the place of the one of the same key."""

    url: Text
    table: Text
    key: tuple[Text, ...] = ()
    latest_by: Text | None = None
    user: str = ""
    password_variable: str = ""
    driver: str = ""


@dataclass(frozen=True, kw_only=True)
class ConsoleSink(Sink):
    """Rows printed to standard output: for trying things out."""

    rows: int = 20


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """A whole file. `trigger` is Spark's interval between micro-batches; empty: as soon as there is something.

    `declared` are the names of all sources and steps, of those that could not be read, too.
    """

    name: str
    bootstrap: str
    checkpoint: str
    trigger: str
    sources: Mapping[str, Source]
    steps: Mapping[str, Step]
    sinks: Mapping[str, Sink]
    settings: Mapping[str, str] = field(default_factory=dict)
    declared: frozenset[str] = frozenset()

    def tables(self) -> dict[str, Any]:
        """Return everything that can be read by name: sources and steps."""
        return {**self.sources, **self.steps}
