"""Conversion of a file's nodes to a Pipeline: values of a wrong type and unknown keys become
problems.
"""

import json
import re
import time
import warnings
from collections.abc import Callable, Mapping
from typing import TypeVar

from ottla.base.loading import deferred
from ottla.base.options import is_digits
from ottla.streams.pipelines import data_types
from ottla.streams.pipelines.avro import read_avro
from ottla.streams.pipelines.document import Entries, Items, Node, Text
from ottla.streams.pipelines.fields import Fields, kind_of
from ottla.streams.pipelines.model import (
    FILE_FORMATS,
    HEADERS_COLUMN,
    RECORD_COLUMNS,
    ColumnStep,
    FileSource,
    GroupBy,
    Operation,
    Pipeline,
    Select,
    Source,
    SqlStep,
    Start,
    Step,
    TopicSource,
    Watermark,
    Where,
    Window,
    With,
)
from ottla.streams.pipelines.problems import Problems
from ottla.streams.pipelines.sinks import read_security, read_sink

# Few pipelines start at a time.
parse_moment = deferred("ottla.operations.offsets.moments", "parse_moment")

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z_]\w*")
_FORMATS = ("json", "avro", "string", "bytes")
_NO_AVRO = (
    "format avro needs registry (a schema registry's URL, if values begin with a schema id), or avro "
    "(the schema of the values, or its file)."
)
_READS = ("topic", "topics", "pattern", "files")
_OPERATIONS = ("where", "select", "with", "group_by", "watermark")

# Few sources have a pattern.
_of_java = deferred("ottla.streams.expressions.java_patterns", "of_java")


def read_pipeline(node: Node, problems: Problems) -> Pipeline | None:
    """Return the pipeline in a file; if there are errors, the parts that could be read."""
    if not isinstance(node, Entries):
        problems.error(node.position, f"A pipeline must be a mapping of keys, not {kind_of(node)}.")
        return None
    fields = Fields(node, "the pipeline", problems)
    name = fields.text("name", required=True)
    if name is not None and not re.fullmatch(r"[\w.-]+", name.text):
        problems.error(
            name.position, "the pipeline: name may only contain letters, digits, -, _ and '.'."
        )
    result = Pipeline(
        name="" if name is None else name.text,
        bootstrap=fields.word("bootstrap"),
        security=read_security(fields),
        checkpoint=fields.word("checkpoint"),
        trigger=fields.interval("trigger"),
        settings={key: value.text for key, value in fields.pairs("settings").items()},
        sources=_all(fields, "sources", "source", _read_source),
        steps=_all(fields, "steps", "step", _read_step),
        sinks=_all(fields, "sinks", "sink", read_sink),
        declared=frozenset(
            key for part in ("sources", "steps") for key in fields.named(part, part)
        ),
    )
    for part in ("sources", "sinks"):
        if part not in fields:
            fields.error(None, f"{part} is missing.")
    fields.close()
    return result


def _all(
    fields: Fields, key: str, noun: str, read: Callable[[str, Fields], T | None]
) -> Mapping[str, T]:
    results: dict[str, T] = {}
    for name, below in fields.named(key, noun).items():
        if not _NAME.fullmatch(name):
            below.error(
                None,
                f"{name!r} is not a valid name: use letters, digits and _, starting with a letter.",
            )
        value = read(name, below)
        if value is not None:
            results[name] = value
    return results


def _read_source(name: str, fields: Fields) -> Source | None:
    field = fields.pick(_READS, "no input")
    if field is None:
        return None
    result = _read_files(name, fields) if field == "files" else _read_topics(name, fields)
    fields.close()
    return result


def _read_topics(name: str, fields: Fields) -> TopicSource | None:
    topics = (*fields.texts("topic"), *fields.texts("topics"))
    pattern = fields.text("pattern")
    if pattern is not None:
        _check_pattern(pattern, fields)
    kind = fields.choice("format", _FORMATS, "string")
    return TopicSource(
        name=name,
        position=fields.position(),
        topics=topics,
        pattern=pattern,
        format=kind,
        avro=read_avro(fields, kind, required=_NO_AVRO),
        schema=_topic_schema(kind, fields),
        start=_start(fields),
        max_records=fields.number("max_records"),
        headers=fields.flag("headers"),
        tombstones=fields.choice("tombstones", ("row", "skip", "fail"), "row"),
        bad_records=_bad_records(fields),
        bad_topic=_bad_topic(fields),
        reads_uncommitted=fields.choice("isolation", ("committed", "uncommitted"), "committed")
        == "uncommitted",
        fails_on_data_loss=fields.flag("fail_on_data_loss", True),
        is_static=fields.flag("static"),
        watermark=_watermark(fields),
    )


def _start(fields: Fields) -> Start:
    if isinstance(fields.node_of("start"), Entries):
        return Start(offsets=_offsets(fields))
    text = fields.text("start")
    if text is None or not text.text.startswith("@"):
        return Start(end=fields.choice("start", ("earliest", "latest"), "earliest"))
    try:
        return Start(time_ms=parse_moment(text.text[1:], time.time_ns() // 1_000_000))
    except ValueError as error:
        fields.problems.error(text.position, f"{fields.subject}: start: {error}.")
        return Start()


def _offsets(fields: Fields) -> str:
    """Return the starting offsets by topic and partition as JSON; a problem for other forms."""
    starts: dict[str, dict[str, int]] = {}
    node = fields.node_of("start")
    for topic, partitions in node if isinstance(node, Entries) else ():
        for partition, offset in partitions if isinstance(partitions, Entries) else ():
            number = offset.text if isinstance(offset, Text) else ""
            if is_digits(partition.text, 9) and is_digits(number, 18):
                starts.setdefault(topic.text, {})[partition.text] = int(number)
                continue
            fields.error("start", "start must have an offset for each partition, as in {0: 17}.")
        if topic.text not in starts:
            fields.error("start", f"start.{topic.text} must be a mapping of partitions to offsets.")
    return json.dumps(starts)


def _bad_records(fields: Fields) -> str:
    if isinstance(fields.node_of("bad_records"), Entries):
        return "topic"
    return fields.choice("bad_records", ("fail", "skip"), "fail")


def _bad_topic(fields: Fields) -> Text | None:
    if not isinstance(fields.node_of("bad_records"), Entries):
        return None
    below = fields.below("bad_records", f"{fields.subject}: bad_records")
    assert below is not None
    topic = below.text("topic", required=True)
    below.close()
    if fields.flag("static"):
        fields.error("bad_records", "a static source has no dead-letter topic: use skip or fail.")
    return topic


def _check_pattern(pattern: Text, fields: Fields) -> None:
    try:
        _of_java(pattern.text)
    except ValueError as error:
        at, reason = pattern.position, f"{str(error).partition(': ')[0]}: name the topics instead"
        with warnings.catch_warnings(action="ignore"):
            try:
                re.compile(pattern.text)
            except re.error as wrong:
                at = pattern.at(wrong.pos or 0)
                reason = f"is not a valid regular expression: {wrong.msg}"
        fields.problems.error(at, f"{fields.subject}: pattern {reason}.")


def _topic_schema(kind: str, fields: Fields) -> Mapping[str, str] | None:
    has_columns = kind in ("json", "avro")
    schema = read_schema(fields, required=has_columns)
    is_known = fields.word("format", "string") in _FORMATS
    if schema is not None and kind in ("string", "bytes") and is_known:
        fields.error("schema", f"format {kind} needs no schema: its only column is value.")
    for column in schema or ():
        if column in RECORD_COLUMNS or column == HEADERS_COLUMN:
            fields.error("schema", f"{column} is a column of every record: choose another name.")
    return schema if has_columns else None


def read_schema(fields: Fields, *, required: bool = False) -> Mapping[str, str] | None:
    """Return a schema: a mapping of names to types, or one text with both."""
    node = fields.node_of("schema", required=required)
    if node is None:
        return None
    if isinstance(node, Text):
        try:
            return data_types.columns_of(node.text)
        except ValueError as error:
            fields.problems.error(node.position, f"{fields.subject}: schema: {error}")
            return None
    if isinstance(node, Items):
        message = f"{fields.subject}: schema must be a mapping of names to types, not a list."
        fields.problems.error(node.position, message)
        return None
    results: dict[str, str] = {}
    for column, kind in fields.pairs("schema").items():
        results[column] = kind.text
        wrong = data_types.check_type(kind.text)
        if wrong:
            fields.problems.error(kind.position, f"{fields.subject}: schema.{column}: {wrong}")
    return results


def _read_files(name: str, fields: Fields) -> FileSource | None:
    path = fields.text("files")
    schema = read_schema(fields)
    is_static = fields.flag("static")
    kind = fields.choice("format", FILE_FORMATS, _by_suffix(path))
    if not kind and "format" not in fields:
        fields.error(None, f"format is missing: {', '.join(FILE_FORMATS)}.")
    if kind == "text":
        if schema is not None:
            fields.error("schema", "format text needs no schema: its only column is value.")
        schema = {"value": "string"}
    if schema is None and not is_static and "schema" not in fields:
        fields.error(
            None, "schema is missing: the columns of files that arrive later must be known."
        )
    options = fields.pairs("options")
    watermark = _watermark(fields)
    if path is None:
        return None
    return FileSource(
        name=name,
        position=fields.position(),
        path=path,
        format=kind,
        schema=schema,
        is_static=is_static,
        options=options,
        watermark=watermark,
    )


def _by_suffix(path: Text | None) -> str:
    suffix = "" if path is None else path.text.rpartition(".")[2].lower()
    return {"jsonl": "json", "ndjson": "json"}.get(suffix, suffix if suffix in FILE_FORMATS else "")


def _watermark(fields: Fields) -> Watermark | None:
    below = fields.below("watermark", f"{fields.subject}: watermark")
    return None if below is None else _read_watermark(below)


def _read_watermark(fields: Fields) -> Watermark | None:
    column = fields.text("column", required=True)
    delay = fields.interval("delay", required=True)
    fields.close()
    return None if column is None else Watermark(column=column, delay=delay)


def _read_step(name: str, fields: Fields) -> Step | None:
    field = fields.pick(("sql", "from"), "no query or input")
    if field is None:
        return None
    if field == "sql":
        sql = fields.text("sql")
        fields.close()
        return None if sql is None else SqlStep(name=name, position=fields.position(), sql=sql)
    origin = fields.text("from")
    node = fields.node_of("do", required=True)
    fields.close()
    operations: list[Operation] = []
    if isinstance(node, Items):
        read = (_read_operation(operation, fields) for operation in node)
        operations = [operation for operation in read if operation is not None]
    elif node is not None:
        fields.error("do", f"do must be a list of operations, not {kind_of(node)}.")
    if origin is None:
        return None
    return ColumnStep(
        name=name, position=fields.position(), origin=origin, operations=tuple(operations)
    )


def _read_operation(node: Node, step: Fields) -> Operation | None:
    if not isinstance(node, Entries):
        step.problems.error(
            node.position,
            f"{step.subject}: an operation must be one of {', '.join(_OPERATIONS)}, as in - where: …",
        )
        return None
    fields = Fields(node, step.subject, step.problems)
    field = fields.pick(_OPERATIONS, "no operation")
    if field is None:
        return None
    result = _OPERATION_READERS[field](fields)
    fields.close()
    return result


def _read_where(fields: Fields) -> Operation | None:
    condition = fields.text("where")
    return None if condition is None else Where(condition=condition)


def _read_select(fields: Fields) -> Operation | None:
    return Select(columns=fields.texts("select"))


def _read_with(fields: Fields) -> Operation | None:
    return With(columns=fields.pairs("with"))


def _read_group_by(fields: Fields) -> Operation | None:
    below = fields.below("window", f"{fields.subject}: window")
    columns = fields.node_of("group_by")
    # An empty list is required to group by a window only.
    is_empty = isinstance(columns, Items) and not columns.items and below is not None
    names = () if is_empty else fields.texts("group_by")
    aggregates = fields.pairs("aggregate")
    if "aggregate" not in fields:
        fields.error("group_by", "aggregate is missing: the aggregates by name.")
    window = None if below is None else _read_window(below)
    return GroupBy(columns=names, aggregates=aggregates, window=window)


def _read_window(fields: Fields) -> Window | None:
    column = fields.text("column", required=True)
    size, slide = fields.interval("size", required=True), fields.interval("slide")
    fields.close()
    return None if column is None else Window(column=column, size=size, slide=slide)


def _read_watermark_operation(fields: Fields) -> Operation | None:
    return _watermark(fields)


_OPERATION_READERS: Mapping[str, Callable[[Fields], Operation | None]] = {
    "where": _read_where,
    "select": _read_select,
    "with": _read_with,
    "group_by": _read_group_by,
    "watermark": _read_watermark_operation,
}
