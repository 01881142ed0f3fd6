"""Checks of a whole file before it runs: its keys and values, and the references between its parts."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ottla.streams.pipelines import sql_text
from ottla.streams.pipelines.document import Text, parse
from ottla.streams.pipelines.model import (
    ColumnStep,
    ConsoleSink,
    FileSink,
    GroupBy,
    JdbcSink,
    MirrorSink,
    Operation,
    Pipeline,
    Select,
    Sink,
    Source,
    SqlStep,
    Step,
    TopicSink,
    TopicSource,
    Watermark,
    Where,
    With,
)
from ottla.streams.pipelines.problems import Problem, Problems, suggest
from ottla.streams.pipelines.reading import read_pipeline
from ottla.streams.pipelines.table_formats import TABLE_FORMATS, with_table_settings


@dataclass(frozen=True)
class Checked:
    """The result of a check: the pipeline, or None if it cannot run, and the problems in file
    order.
    """

    pipeline: Pipeline | None
    problems: list[Problem]


def check(text: str) -> Checked:
    """Check the text of a pipeline file."""
    problems = Problems()
    node = parse(text, problems)
    pipeline = None if node is None else read_pipeline(node, problems)
    if pipeline is not None:
        _Checker(pipeline, problems).run()
        formats = {sink.format for sink in pipeline.sinks.values() if isinstance(sink, FileSink)}
        settings = with_table_settings(pipeline.settings, formats)
        pipeline = replace(pipeline, settings=settings)
    return Checked(None if problems.has_errors else pipeline, problems.in_order)


def check_topics(pipeline: Pipeline, existing: Iterable[str]) -> list[Problem]:
    """Return the problems of a pipeline with respect to the topics of a cluster."""
    problems, names = Problems(), set(existing)
    for source in pipeline.sources.values():
        for topic in source.topics if isinstance(source, TopicSource) else ():
            if topic.text not in names:
                hint = suggest(topic.text, names)
                problems.error(
                    topic.position, f"source {source.name}: there is no topic {topic}. {hint}"
                )
    for sink in pipeline.sinks.values():
        if not isinstance(sink, TopicSink | MirrorSink) or sink.bootstrap:
            continue
        if sink.topic.text not in names:
            message = f"sink {sink.name}: there is no topic {sink.topic} yet"
            advice = "create it, unless the brokers may create topics automatically."
            problems.warn(sink.topic.position, f"{message}: {advice}")
    return problems.in_order


def references(step: Step | Sink) -> list[tuple[str, Text, int]]:
    """Return the tables that a step or a sink reads: the name, the text with it, and its offset
    there.
    """
    if isinstance(step, SqlStep):
        return [(table.name, step.sql, table.start) for table in sql_text.tables(step.sql.text)]
    return [(step.origin.text, step.origin, 0)]


def order_of_steps(pipeline: Pipeline) -> list[Step]:
    """Return the steps so that each follows those it reads; steps of cycles are left out."""
    ordered: dict[str, Step] = {}
    names = {name.lower(): name for name in pipeline.tables()}
    waiting = list(pipeline.steps.values())
    while waiting:
        ready = [
            step
            for step in waiting
            if all(
                names.get(name.lower()) in ordered or names.get(name.lower()) in pipeline.sources
                for name, _, _ in references(step)
            )
        ]
        if not ready:
            break
        ordered |= {step.name: step for step in ready}
        waiting = [step for step in waiting if step.name not in ordered]
    return list(ordered.values())


class _Checker:
    """The checks of the references between the parts of a pipeline."""

    def __init__(self, pipeline: Pipeline, problems: Problems) -> None:
        self._pipeline = pipeline
        self._problems = problems
        # SQL names are case-insensitive.
        self._names = {name.lower(): name for name in pipeline.tables()}
        self._declared = {name.lower() for name in pipeline.declared}

    def run(self) -> None:
        """Note all problems."""
        self._check_names()
        for step in self._pipeline.steps.values():
            self._check_texts(step)
            self._check_references(step, f"step {step.name}")
        for sink in self._pipeline.sinks.values():
            self._check_references(sink, f"sink {sink.name}")
            self._check_sink_texts(sink)
        # The connections between the parts are known only if every part could be read.
        if not self._check_circles() and self._declared == set(self._names):
            if not self._problems.has_errors:
                self._check_use()
            for sink in self._pipeline.sinks.values():
                self._check_sink(sink)

    def _check_names(self) -> None:
        pipeline = self._pipeline
        owners: dict[str, str] = {}
        for noun, tables in (("source", pipeline.sources), ("step", pipeline.steps)):
            for name, table in tables.items():
                other = owners.setdefault(name.lower(), f"{noun} {name}")
                if other != f"{noun} {name}":
                    self._problems.error(
                        table.position, f"{noun} {name}: {other} already has this name."
                    )

    def _check_texts(self, step: Step) -> None:
        subject = f"step {step.name}"
        if isinstance(step, SqlStep):
            if sql_text.check_shape(step.sql, subject, self._problems):
                first = next(sql_text.tokens(step.sql.text))
                if first.lower not in ("select", "with", "from", "values", "("):
                    position = step.sql.at(first.start)
                    self._problems.error(
                        position, f"{subject}: sql must be a query (SELECT …), not {first.text}."
                    )
            return
        for text in (text for operation in step.operations for text in texts_of(operation)):
            sql_text.check_shape(text, subject, self._problems)

    def _check_sink_texts(self, sink: Sink) -> None:
        texts: tuple[Text | None, ...] = ()
        if isinstance(sink, TopicSink):
            texts = (sink.key,)
        elif isinstance(sink, FileSink):
            texts = (sink.time,)
        for text in texts:
            if text is not None:
                sql_text.check_shape(text, f"sink {sink.name}", self._problems)

    def _check_references(self, part: Step | Sink, subject: str) -> None:
        for name, text, index in references(part):
            if name and name.lower() not in self._declared:
                hint = suggest(name, self._pipeline.declared)
                self._problems.error(
                    text.at(index), f"{subject}: there is no source or step {name}. {hint}"
                )

    def _known(self, part: Step | Sink) -> list[str]:
        names = (self._names.get(name.lower()) for name, _, _ in references(part))
        return [name for name in names if name is not None]

    def _check_circles(self) -> bool:
        """Note each cycle once; return True if there are any."""
        steps = self._pipeline.steps
        walked: set[str] = set()
        is_cyclic = False

        def walk(name: str, path: list[str]) -> None:
            nonlocal is_cyclic
            if name in path:
                circle = [*path[path.index(name) :], name]
                first = min(circle, key=lambda step: steps[step].position)
                at = circle.index(first)
                names = [*circle[at:-1], *circle[:at], first]
                message = f"step {first}: cyclic reference: {' reads '.join(names)}."
                self._problems.error(steps[first].position, message)
                is_cyclic = True
            elif name not in walked and name in steps:
                for upstream in self._known(steps[name]):
                    walk(upstream, [*path, name])
                walked.add(name)

        for name in steps:
            walk(name, [])
        return is_cyclic

    def _check_use(self) -> None:
        used: set[str] = set()
        for sink in self._pipeline.sinks.values():
            used |= {upstream for name in self._known(sink) for upstream in self._upstream(name)}
        for noun, tables in (("source", self._pipeline.sources), ("step", self._pipeline.steps)):
            for name, table in tables.items():
                if name not in used and self._pipeline.sinks:
                    message = f"{noun} {name}: no sink reads it: it will not run."
                    self._problems.warn(table.position, message)

    def _upstream(self, name: str) -> Iterator[str]:
        """Yield a table and all tables that it depends on."""
        yield name
        step = self._pipeline.steps.get(name)
        for origin in self._known(step) if step is not None else ():
            yield from self._upstream(origin)

    def _parts(self, sink: Sink) -> list[Source | Step]:
        tables = self._pipeline.tables()
        return [tables[upstream] for name in self._known(sink) for upstream in self._upstream(name)]

    def _check_table_format(self, sink: FileSink) -> None:
        table_format = TABLE_FORMATS.get(sink.format)
        if table_format is None or table_format.is_named(self._pipeline.settings):
            return
        self._problems.error(
            sink.position,
            f"sink {sink.name}: format {sink.format} needs a package: add settings: "
            f"{{spark.jars.packages: '{table_format.package}:VERSION'}}, with its version for your "
            "Spark.",
        )

    def _check_sink(self, sink: Sink) -> None:
        if isinstance(sink, FileSink):
            self._check_table_format(sink)
        parts = self._parts(sink)
        if isinstance(sink, MirrorSink):
            self._check_mirror(sink)
        sources = [part for part in parts if isinstance(part, Source)]
        if sources and all(source.is_static for source in sources):
            message = f"sink {sink.name}: all its inputs are static: a stream is required."
            self._problems.error(sink.origin.position, message)
        if any(map(_is_grouped, parts)) and not any(map(_has_watermark, parts)):
            self._check_totals(sink, sources)

    def _check_totals(self, sink: Sink, sources: list[Source]) -> None:
        # Aggregates of a static table that is joined with a stream are complete immediately.
        if sink.mode != "append" or any(source.is_static for source in sources):
            return
        advice = "add a watermark to a source, so that windows close"
        if isinstance(sink, TopicSink | JdbcSink | ConsoleSink):
            advice += ", or use `mode: update` in the sink to write every change of an aggregate"
        self._problems.error(
            sink.position,
            f"sink {sink.name}: aggregates of a stream without a watermark are never final: {advice}.",
        )

    def _check_mirror(self, sink: MirrorSink) -> None:
        source = self._pipeline.sources.get(sink.origin.text)
        subject = f"sink {sink.name}"
        if not isinstance(source, TopicSource) or len(source.topics) != 1 or source.is_static:
            if sink.origin.text.lower() in self._names:
                self._problems.error(
                    sink.origin.position,
                    f"{subject}: a mirror needs a source that reads one topic.",
                )
        elif source.topics[0].text == sink.topic.text and not sink.bootstrap:
            self._problems.error(
                sink.topic.position, f"{subject}: {sink.topic} cannot mirror itself."
            )


def texts_of(operation: Operation) -> list[Text]:
    """Return the expressions of an operation."""
    match operation:
        case Where():
            return [operation.condition]
        case Select():
            return list(operation.columns)
        case With():
            return list(operation.columns.values())
        case Watermark():
            return [operation.column]
        case GroupBy():
            window = [] if operation.window is None else [operation.window.column]
            return [*operation.columns, *operation.aggregates.values(), *window]


def _is_grouped(part: Source | Step) -> bool:
    if isinstance(part, ColumnStep):
        return any(isinstance(operation, GroupBy) for operation in part.operations)
    if not isinstance(part, SqlStep):
        return False
    tokens = [token.lower for token in sql_text.tokens(part.sql.text)]
    return ("group", "by") in set(itertools.pairwise(tokens))


def _has_watermark(part: Source | Step) -> bool:
    if isinstance(part, ColumnStep):
        return any(isinstance(operation, Watermark) for operation in part.operations)
    return isinstance(part, Source) and part.watermark is not None
