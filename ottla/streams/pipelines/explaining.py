"""The description of a pipeline as rows: each source, step and sink, in the order of the data flow."""

from typing import Any

from ottla.streams.pipelines.checking import order_of_steps, references
from ottla.streams.pipelines.model import (
    ColumnStep,
    ConsoleSink,
    FileSink,
    FileSource,
    GroupBy,
    JdbcSink,
    MirrorSink,
    Operation,
    Pipeline,
    Select,
    Sink,
    Source,
    Step,
    TopicSink,
    TopicSource,
    Watermark,
    Where,
    With,
)


def explain(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Return a row for each part: kind, name, reads, does, promises, line."""
    rows = [_source(source) for source in pipeline.sources.values()]
    rows += [_step(step) for step in order_of_steps(pipeline)]
    rows += [_sink(sink) for sink in pipeline.sinks.values()]
    return rows


def promise(sink: Sink) -> str:
    """Return the delivery guarantee of a sink when its query is restarted."""
    if isinstance(sink, ConsoleSink):
        return "to look at"
    is_update = isinstance(sink, TopicSink) and sink.mode == "update"
    return "at least once" if is_update else "exactly once"


def _row(kind: str, part: Source | Step | Sink, reads: str, does: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": part.name,
        "reads": reads,
        "does": does,
        "promises": promise(part) if isinstance(part, Sink) else "",
        "line": part.position.line,
    }


def _source(source: Source) -> dict[str, Any]:
    if isinstance(source, TopicSource):
        topics = ",".join(map(str, source.topics)) or f"topics like {source.pattern}"
        reads, does = topics, source.format
    else:
        assert isinstance(source, FileSource)
        reads, does = source.path.text, source.format
    if source.is_static:
        does += ", once at the start"
    if source.watermark is not None:
        does += f", up to {source.watermark.delay} late"
    return _row("source", source, reads, does)


def _step(step: Step) -> dict[str, Any]:
    names = dict.fromkeys(name for name, _, _ in references(step))
    if isinstance(step, ColumnStep):
        does = "; ".join(map(_operation, step.operations))
    else:
        does = " ".join(step.sql.text.split())
    return _row("step", step, ",".join(names), does)


def _operation(operation: Operation) -> str:
    match operation:
        case Where():
            return f"where {operation.condition}"
        case Select():
            return f"select {', '.join(map(str, operation.columns))}"
        case With():
            return f"with {', '.join(operation.columns)}"
        case Watermark():
            return f"up to {operation.delay} late"
        case GroupBy():
            window = operation.window
            keys = [str(column) for column in operation.columns]
            keys += [] if window is None else [f"windows of {window.size}"]
            return f"{', '.join(operation.aggregates)} by {', '.join(keys)}"


def _sink(sink: Sink) -> dict[str, Any]:
    return _row("sink", sink, sink.origin.text, _target(sink))


def _target(sink: Sink) -> str:
    match sink:
        case TopicSink():
            return f"{sink.mode}s to topic {sink.topic}"
        case MirrorSink():
            groups = ", ".join(map(str, sink.groups))
            follow = f"; the groups {groups} follow" if groups else ""
            return f"mirrors to topic {sink.topic}, offsets in {sink.offsets_topic}{follow}"
        case FileSink():
            folders = [*map(str, sink.partition_by), *([sink.by] if sink.by else [])]
            by = f" by {', '.join(folders)}" if folders else ""
            return f"{sink.format} files in {sink.path}{by}"
        case JdbcSink():
            key = f", a row for each {', '.join(map(str, sink.key))}" if sink.key else ""
            return f"table {sink.table} of {sink.url}{key}"
    return "prints"
