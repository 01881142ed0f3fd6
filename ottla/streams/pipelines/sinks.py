"""Reading of the sinks of a pipeline file."""

from ottla.base.loading import deferred
from ottla.streams.pipelines.avro import read_avro
from ottla.streams.pipelines.document import Text
from ottla.streams.pipelines.fields import Fields
from ottla.streams.pipelines.model import (
    FILE_FORMATS,
    ConsoleSink,
    FileSink,
    JdbcSink,
    MirrorSink,
    Security,
    Sink,
    TopicSink,
)
from ottla.streams.pipelines.table_formats import TABLE_FORMATS

# Few files have it.
read_security = deferred("ottla.streams.pipelines.security", "read_security")
_WRITES = ("topic", "mirror", "files", "jdbc", "console")
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_PERIODS = ("year", "month", "day", "hour")
_VALUES = ("json", "avro", "record")


def read_sink(name: str, fields: Fields) -> Sink | None:
    """Return a sink, or None if it cannot be read."""
    field = fields.pick(_WRITES, "no destination")
    if field is None:
        return None
    origin = fields.text("from", required=True)
    result = _READERS[field](name, fields, origin or Text("", fields.position()))
    fields.close()
    return result


def _security(fields: Fields) -> Security | None:
    result: Security | None = read_security(fields)
    if result is not None and "bootstrap" not in fields:
        fields.error("security", "security is for another cluster: name it with bootstrap.")
    return result


def _topic(name: str, fields: Fields, origin: Text) -> Sink | None:
    topic = fields.text("topic")
    key = fields.text("key")
    kind = fields.choice("format", _VALUES, "json")
    if kind == "record" and key is not None:
        fields.error("key", "format record uses the column key: omit this option.")
    result = TopicSink(
        name=name,
        position=fields.position(),
        origin=origin,
        mode=fields.choice("mode", ("append", "update"), "append"),
        topic=topic or Text("", fields.position()),
        bootstrap=fields.word("bootstrap"),
        security=_security(fields),
        format=kind,
        avro=read_avro(fields, kind),
        key=key,
        compression=fields.choice("compression", _CODECS, ""),
    )
    return None if topic is None else result


def _mirror(name: str, fields: Fields, origin: Text) -> Sink | None:
    topic = fields.text("mirror")
    result = MirrorSink(
        name=name,
        position=fields.position(),
        origin=origin,
        topic=topic or Text("", fields.position()),
        bootstrap=fields.word("bootstrap"),
        security=_security(fields),
        groups=fields.texts("groups"),
        offsets_topic=fields.word("offsets_topic", f"{topic}.mirror-offsets"),
    )
    return None if topic is None else result


def _files(name: str, fields: Fields, origin: Text) -> Sink | None:
    path = fields.text("files")
    below = fields.below("partition_by_time", f"{fields.subject}: partition_by_time")
    column = by = None
    if below is not None:
        column = below.text("column", required=True)
        by = below.choice("by", _PERIODS, "day")
        below.close()
    kind = fields.choice("format", (*FILE_FORMATS, *TABLE_FORMATS), "parquet")
    result = FileSink(
        name=name,
        position=fields.position(),
        origin=origin,
        path=path or Text("", fields.position()),
        format=kind,
        partition_by=fields.texts("partition_by"),
        time=column,
        by=by or "",
        options=fields.pairs("options"),
    )
    return None if path is None else result


def _jdbc(name: str, fields: Fields, origin: Text) -> Sink | None:
    url, table = fields.text("jdbc"), fields.text("table", required=True)
    if url is not None and not url.text.startswith("jdbc:"):
        fields.problems.error(
            url.position,
            f"{fields.subject}: jdbc must begin with jdbc:, as in jdbc:postgresql://host/database.",
        )
    if "password" in fields:
        fields.node_of("password")
        fields.error(
            "password",
            "do not write a password into a file: name the environment variable that contains it "
            "with password_variable.",
        )
    result = JdbcSink(
        name=name,
        position=fields.position(),
        origin=origin,
        mode=fields.choice("mode", ("append", "update"), "append"),
        url=url or Text("", fields.position()),
        table=table or Text("", fields.position()),
        key=fields.texts("key"),
        latest_by=fields.text("latest_by"),
        user=fields.word("user"),
        password_variable=fields.word("password_variable"),
        driver=fields.word("driver"),
    )
    if result.mode == "update" and not result.key:
        fields.error("mode", "mode update needs a key, to identify the row to replace.")
    if result.latest_by is not None and not result.key:
        fields.error("latest_by", "latest_by needs a key: the latest row of each key is kept.")
    return None if url is None or table is None else result


def _console(name: str, fields: Fields, origin: Text) -> Sink | None:
    if not fields.flag("console", True):
        fields.error("console", "console must be true.")
    return ConsoleSink(
        name=name,
        position=fields.position(),
        origin=origin,
        mode=fields.choice("mode", ("append", "update", "complete"), "append"),
        rows=fields.number("rows") or 20,
    )


_READERS = {"topic": _topic, "mirror": _mirror, "files": _files, "jdbc": _jdbc, "console": _console}
