"""The matrix of readers and writers against the topics of the corpus, with the result of each cell.

`ok`: what a plain consumer reads, byte for byte, in the form of the reader. `said`: something is
left out or changed, and the reader says so. `open`: not tested yet, or known to be wrong.
`docs/what-readers-show.md` is written from this table. Each cell is a test in `test_readers.py`,
`test_writers.py` or `test_spark_cells.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

TOPICS = (
    "corpus-values",
    "corpus-times",
    "corpus-append-time",
    "corpus-transactions",
    "corpus-markers",
    "corpus-compacted",
    "corpus-trimmed",
    "corpus-empty",
    "corpus-emptied",
    "corpus-sizes",
    "corpus-wide",
    "new",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A reader or writer: `form` is what is compared; cells that are not ok have a reason."""

    name: str
    form: str
    others: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def result(self, topic: str) -> str:
        """Return ok, said or open."""
        return self.others.get(topic, self.others.get("*", ("ok", "")))[0]


_TIME = "a statement on the text of keys and values, positions, times and headers"
_CUT = (
    "said",
    "the page has the first million characters, says so, and leads to the whole value",
)
_BODY = ("said", "a request has 4 MiB at most, and a larger one is refused with this limit")
_TIMES_OF_SOURCE = ("said", "the copy has the times of its source: docs/pipelines.md")
_NO_HEADERS = {
    "corpus-values": ("said", "CSV has no headers, and the export says how many records lose them")
}

_MIRRORED = ("corpus-values", "corpus-transactions", "corpus-compacted")
_SOME_MIRRORS = {
    topic: ("open", "a query for each topic, of which three run")
    for topic in TOPICS
    if topic not in _MIRRORED
}
_NO_TEXT = {
    "corpus-values": (
        "said",
        "other values are bad records; keys that are no text have U+FFFD: docs/pipelines.md",
    )
}

READERS = (
    Row("ottla consume -f", "partition, offset, time, lengths, key, value, headers"),
    Row("ottla consume -J", "JSON; bytes that are not UTF-8 as base64"),
    Row("ottla consume -K", "key, delimiter, value"),
    Row("ottla topic search --local", "JSON, as ottla consume -J"),
    Row("ottla topic search in the brokers", "JSON, as ottla consume -J"),
    Row("read_table", "columns, headers included"),
    Row("TopicView", "columns, headers included"),
    Row("DuckDB registration", "columns of a SELECT, headers included"),
    Row("REST search", "hexadecimal keys, values and headers"),
    Row("MCP read_messages", "positions and times"),
    Row("console download JSONL", "text, or hexadecimal, as the encoding says"),
    Row("console download CSV", "text, or hexadecimal, as the encoding says"),
    Row(
        "console list and record page",
        "the text, with control characters as codes; JSON without white space",
        {"corpus-sizes": _CUT},
    ),
    Row("console whole value", "bytes of the value"),
    Row("console live tail", "hexadecimal keys, values and headers"),
    Row(
        "console SQL",
        _TIME,
        {
            "corpus-values": (
                "said",
                "NUL is U+FFFD, and the result says in how many records",
            ),
            "corpus-sizes": (
                "said",
                "values of more than 4 MiB are cut, and the result says how many",
            ),
        },
    ),
    Row("console statistics", "counts, sizes, first and last time"),
    Row(
        "lag in records and seconds",
        "records by partition (console, command, metrics), time of the first unread record",
    ),
    Row("ottla log dump", "JSON, of all records that the files have; base64 beside ambiguous text"),
    Row("ottla topic export --format csv", "text, or base64 with --bytes, in DuckDB", _NO_HEADERS),
    Row("ottla topic export --format json", "text, or base64 with --bytes"),
    Row("ottla topic export --format parquet", "text, or bytes with --bytes, in pyarrow"),
)
SPARK_READERS = (
    Row("Spark source", "all columns, headers included"),
    Row("pipeline source, format: bytes", "all columns, headers included"),
    Row("pipeline source, format: string", "texts of keys and values, headers", _NO_TEXT),
    Row("pipeline source, format: json", "a number of each object", _NO_TEXT),
    Row("pipeline source, format: avro", "the columns of a schema of a registry"),
)
WRITERS = (
    Row(
        "ottla topic copy",
        "everything but the offset",
        {"corpus-append-time": ("said", "the copy has the times of its source: docs/pipelines.md")},
    ),
    Row(
        "ottla topic copy --exactly-once",
        "everything but the offset",
        {
            "corpus-values": (
                "said",
                "timestamps of 0 become the time of the copy, which it reports",
            ),
        },
    ),
    Row("console copy", "everything but the offset"),
    Row("REST produce", "key, value, headers", {"corpus-sizes": _BODY}),
    Row(
        "console send again",
        "key, value, headers",
        {
            "corpus-sizes": ("said", "the form refuses records that are too large for it"),
        },
    ),
    Row("ottla produce", "value, one file for each record"),
    Row(
        "kafka-mirror-maker",
        "everything but the offset",
        {
            "corpus-append-time": _TIMES_OF_SOURCE,
            "corpus-sizes": (
                "said",
                "records that fit only if compressed need compression.type in producer.config",
            ),
        },
    ),
    Row("ottla topic load --format csv", "exported files: all but offset and headers", _NO_HEADERS),
    Row("ottla topic load --format json", "exported files: everything but the offset"),
    Row("ottla topic load --format parquet", "exported files: everything but the offset"),
)
SPARK_WRITERS = (
    Row("Spark sink", "time, key, value, headers"),
    Row("pipeline sink, topic", "time, key, value, headers"),
    Row("pipeline sink, files", "all columns of Parquet, in pyarrow"),
    Row("pipeline sink, jdbc", "partition, offset, time, key, value in Derby"),
    Row("pipeline sink, mirror", "partition, time, key, value, headers", _SOME_MIRRORS),
    Row("serdes", "values as bytes, texts, JSON, Avro and Protobuf"),
)
ALL_ROWS = (*READERS, *SPARK_READERS, *WRITERS, *SPARK_WRITERS)


def cells(rows: tuple[Row, ...]) -> list[tuple[str, str]]:
    """Return the name and the topic of each cell that is a test."""
    return [(row.name, topic) for row in rows for topic in TOPICS if row.result(topic) != "open"]
