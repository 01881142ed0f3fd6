"""Finds the steps of a sub-topology that run in Spark's JVM: Column expressions from its sources
on.

This module does not use Spark. A stateless sub-topology is walked from each source. A step is
lowered if it is an expression with a type, or only forwards records. A sink is lowered if Spark, or
the task that writes the records, can apply its serdes to their types. A record that reaches a step
in Python is processed by the whole sub-topology in Python, and so is a record that Spark may read
differently. The output is identical either way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ottla.client.serdes.json_values import writes_json
from ottla.streams.expressions.columns import Column, Evaluated, OfSpark, Pair
from ottla.streams.layout.layout import Layout, SubTopology
from ottla.streams.model.errors import TopologyError
from ottla.streams.operators import stateless
from ottla.streams.serdes import Serde, resolve
from ottla.streams.serdes.serde import BYTES, DOUBLE, INTEGER, LONG, STRING
from ottla.streams.spark.catalyst.column_types import (
    ColumnType,
    RunsInPython,
    Scalar,
    Structure,
    type_of,
    type_read,
)
from ottla.streams.topology.topology import ProcessorNode, Sink, Source, TopologyNode

Expression = Column | OfSpark
Types = tuple[ColumnType, ColumnType]
SparkType = Callable[[OfSpark, ColumnType, ColumnType], ColumnType]
"""Asks Spark for the type of its own expression over a key and a value."""

# A merge is walked once for each stream that it merges.
_STEPS_MAX = 100
SOURCE = -1
"""The parent of the first steps."""
_FUNCTION = "a function"


class Conversion(Enum):
    """The conversion of the value of an expression to bytes."""

    AS_READ = "as it was read"
    TEXT = "text in UTF-8, or bytes as they are"
    INTEGER = "32 bits"
    LONG = "64 bits"
    SERDE = "by the serde, in the task that writes the record"


@dataclass(frozen=True)
class Step:
    """A step in the JVM, for records for which each condition has the given result."""

    parent: int
    node: str
    conditions: tuple[tuple[Expression, bool], ...] = ()
    key: Expression | None = None
    value: Expression | None = None


@dataclass(frozen=True)
class Output:
    """The rows of a sink; `step` is the step above it."""

    step: int
    sink: Sink
    topic: str
    key: Conversion
    value: Conversion
    serdes: tuple[Serde[Any], Serde[Any]]


@dataclass
class LoweredSource:
    """The steps below a source that run in the JVM."""

    kind: int
    source: Source
    topics: tuple[str, ...]
    serdes: tuple[Serde[Any], Serde[Any]]
    types: Types | None = None
    """None if the JVM cannot read the records: everything runs in Python."""
    steps: list[Step] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    to_python: set[int] = field(default_factory=set)
    """The steps with a step below that runs in Python."""
    reasons: dict[str, str] = field(default_factory=dict)
    """The reasons why steps run in Python, by node."""
    nodes: set[str] = field(default_factory=set)
    """The steps and sinks that run in the JVM on at least one path."""

    @property
    def is_worth_it(self) -> bool:
        """True if processing of some records ends in the JVM: they are written from there, or
        filtered out.
        """
        return bool(self.outputs) or any(step.conditions for step in self.steps)


def lower_layout(layout: Layout, spark_type: SparkType | None = None) -> list[LoweredSource] | None:
    """Return the steps that run in the JVM, by source; None if the whole query runs in Python.

    Raises TopologyError if a Column of pyspark is in a step that runs in Python and has no
    equivalent there.
    """
    results: list[LoweredSource] = []
    is_possible = not (layout.levels or layout.patterns or layout.created or layout.clock_topic)
    is_possible = is_possible and all(len(route) == 1 for route in layout.routes.values())
    for number, kind in enumerate(layout.sub_topologies):
        if is_possible:
            sources = (node for node in kind.topology.nodes.values() if isinstance(node, Source))
            results += [_Walk(number, kind, source, spark_type).found for source in sources]
        else:
            _refuse_sparks(kind, {}, "it is in a stateful query")
    for result in results:
        kind = layout.sub_topologies[result.kind]
        _refuse_sparks(kind, result.reasons, None)
    return results if any(lowered.is_worth_it for lowered in results) else None


def topic_numbers(lowered: Sequence[LoweredSource]) -> dict[str, int]:
    """Return the numbers by which rows name their topics."""
    return {topic: n for n, topic in enumerate(topic for part in lowered for topic in part.topics)}


def _refuse_sparks(kind: SubTopology, reasons: dict[str, str], otherwise: str | None) -> None:
    for node in kind.topology.nodes.values():
        why = reasons.get(node.name, otherwise)
        expressions = expressions_of(node) if why is not None else []
        for expression in expressions:
            if isinstance(expression, OfSpark) and expression.meaning is None:
                raise TopologyError(
                    f"{node.name} is the expression {expression} of pyspark, which only the JVM evaluates ({expression.why}), "
                    f"but this step runs in Python ({why}): write it with col() of ottla.streams or as a function"
                )


def expressions_of(node: TopologyNode) -> list[Expression]:
    """Return the Column expressions of a node."""
    supplier = node.supplier if isinstance(node, ProcessorNode) else None
    attributes = list(vars(supplier).values()) if hasattr(supplier, "__dict__") else []
    attributes += [
        element for attribute in attributes if isinstance(attribute, tuple) for element in attribute
    ]
    attributes += [
        element
        for attribute in attributes
        if isinstance(attribute, Pair)
        for element in (attribute.key, attribute.value)
    ]
    result = (
        attribute.column if isinstance(attribute, Evaluated) else attribute
        for attribute in attributes
    )
    return [expression for expression in result if isinstance(expression, Column | OfSpark)]


class _Walk:
    """The walk below one source."""

    def __init__(
        self, number: int, kind: SubTopology, source: Source, spark_type: SparkType | None
    ) -> None:
        name = kind.application.topic_name
        self._kind = kind
        self._spark_type = spark_type
        self._children: dict[str, list[TopologyNode]] = {}
        for node in kind.topology.nodes.values():
            for parent in () if isinstance(node, Source) else node.parents:
                self._children.setdefault(parent, []).append(node)
        defaults = kind.application.settings.defaults
        self._extractor = kind.application.settings.default_timestamp_extractor
        self._serdes = resolve(source.key, defaults.key), resolve(source.value, defaults.value)
        topics = tuple(map(name, source.topics))
        self.found = LoweredSource(number, source, topics, self._serdes)
        try:
            self._start()
        except RunsInPython as error:
            self.found.reasons[source.name] = str(error)
            self._leave(SOURCE, self._children.get(source.name, []))

    def _start(self) -> None:
        source = self.found.source
        if (source.timestamp_extractor or self._extractor) is not None:
            raise RunsInPython("its timestamp extractor is a function")
        if source.carries_changes:
            raise RunsInPython("it reads changes of a table")
        types = type_read(self._serdes[0]), type_read(self._serdes[1])
        self.found.types = types
        self._below(source.name, SOURCE, types, (True, True))

    def _below(self, name: str, step: int, types: Types, as_read: tuple[bool, bool]) -> None:
        """Lower the nodes below a step; `as_read` is True for key or value if it is still the
        source's.
        """
        for node in self._children.get(name, []):
            try:
                if isinstance(node, Sink):
                    self.found.outputs.append(self._output(node, step, types, as_read))
                    self.found.nodes.add(node.name)
                    continue
                assert isinstance(node, ProcessorNode)
                self._lower(node, step, types, as_read)
            except RunsInPython as error:
                self.found.reasons[node.name] = str(error)
                self._leave(step, [node])

    def _leave(self, step: int, nodes: Sequence[TopologyNode]) -> None:
        """Leave nodes and all nodes below them to Python."""
        self.found.to_python.add(step)
        pending = list(nodes)
        while pending:
            node = pending.pop()
            self.found.reasons.setdefault(node.name, "it follows a step in Python")
            below = self._children.get(node.name, [])
            pending += [child for child in below if child.name not in self.found.reasons]

    def _lower(
        self, node: ProcessorNode, step: int, types: Types, as_read: tuple[bool, bool]
    ) -> None:
        supplier: Any = node.supplier
        if isinstance(supplier, stateless.Branch):
            self._branch(node, supplier, (step, types, as_read))
            return
        key, value = types
        if isinstance(supplier, stateless.Filter):
            test = self._condition(supplier.predicate, types)
            lowered = Step(step, node.name, ((test, not supplier.negate),))
        elif isinstance(supplier, stateless.SelectKey):
            lowered = Step(step, node.name, key=_expression(supplier.mapper))
            key, as_read = self._mapped(lowered.key, types), (False, as_read[1])
        elif isinstance(supplier, stateless.Map):
            pair = supplier.mapper
            if not isinstance(pair, Pair):
                raise RunsInPython(_FUNCTION)
            lowered = Step(
                step, node.name, key=_expression(pair.key), value=_expression(pair.value)
            )
            key, value = self._mapped(lowered.key, types), self._mapped(lowered.value, types)
            as_read = False, False
        elif isinstance(supplier, stateless.MapValues):
            lowered = Step(step, node.name, value=_expression(supplier.mapper))
            value, as_read = self._mapped(lowered.value, types), (as_read[0], False)
        elif isinstance(supplier, stateless.PassThrough):
            lowered = Step(step, node.name)
        else:
            raise RunsInPython(_FUNCTION)
        self._below(node.name, self._add(lowered), (key, value), as_read)

    def _branch(
        self,
        node: ProcessorNode,
        supplier: stateless.Branch,
        parent: tuple[int, Types, tuple[bool, bool]],
    ) -> None:
        step, types, as_read = parent
        tests = [self._condition(predicate, types) for predicate in supplier.predicates]
        self.found.nodes.add(node.name)
        arms = [*zip(supplier.children, range(len(tests)), strict=True)]
        if supplier.default_child is not None:
            arms.append((supplier.default_child, len(tests)))
        for child, number in arms:
            conditions = [(test, False) for test in tests[:number]]
            conditions += [(test, True) for test in tests[number : number + 1]]
            self._below(child, self._add(Step(step, child, tuple(conditions))), types, as_read)

    def _add(self, step: Step) -> int:
        steps = self.found.steps
        if len(steps) >= _STEPS_MAX:
            raise RunsInPython("there are too many steps")
        steps.append(step)
        self.found.nodes.add(step.node)
        return len(steps) - 1

    def _type(self, expression: Expression | None, types: Types) -> ColumnType:
        if isinstance(expression, Column):
            return type_of(expression, *types)
        assert expression is not None
        assert self._spark_type is not None, "pyspark's expressions need Spark's types"
        return self._spark_type(expression, *types)

    def _condition(self, function: Any, types: Types) -> Expression:
        expression = _expression(function)
        kind = self._type(expression, types)
        if kind not in (Scalar.FLAG, Scalar.NOTHING):
            raise RunsInPython("a condition that is not a boolean runs in Python")
        return expression

    def _mapped(self, expression: Expression | None, types: Types) -> ColumnType:
        kind = self._type(expression, types)
        if isinstance(kind, Structure) and not kind.made:
            raise RunsInPython("a whole object runs in Python")
        if isinstance(kind, Structure) and not _is_plain(kind):
            raise RunsInPython("a struct that contains an object runs in Python")
        return kind

    def _output(self, sink: Sink, step: int, types: Types, as_read: tuple[bool, bool]) -> Output:
        if not isinstance(sink.topic, str):
            raise RunsInPython("its topic is chosen by a function")
        if sink.partitioner is not None:
            raise RunsInPython("its partitioner is a function")
        if sink.carries_changes:
            raise RunsInPython("it writes changes of a table")
        defaults = self._kind.application.settings.defaults
        topic = self._kind.application.topic_name(sink.topic)
        key = resolve(sink.key, defaults.key).of(topic, is_key=True)
        value = resolve(sink.value, defaults.value).of(topic, is_key=False)
        serializations = [
            _conversion(serde, kind, same and serde is read)
            for serde, kind, same, read in zip(
                (key, value), types, as_read, self._serdes, strict=True
            )
        ]
        return Output(step, sink, topic, serializations[0], serializations[1], (key, value))


def _expression(function: Any) -> Expression:
    if isinstance(function, Evaluated):
        return function.column
    if isinstance(function, OfSpark):
        return function
    raise RunsInPython(_FUNCTION)


def _is_plain(kind: Structure) -> bool:
    """Return True if all structures in a structure were made by expressions."""
    inner = [field_ for field_ in kind.fields.values() if isinstance(field_, Structure)]
    return all(structure.made and _is_plain(structure) for structure in inner)


def _conversion(serde: Serde[Any], kind: ColumnType, as_read: bool) -> Conversion:
    """Return how a serde writes values of a type; raise RunsInPython if it may reject them."""
    if as_read and isinstance(kind, Scalar):
        return Conversion.AS_READ
    if isinstance(kind, Structure) and not kind.made:
        raise RunsInPython(f"{serde!r} writes an object")
    serializations = {
        (STRING, Scalar.TEXT): Conversion.TEXT,
        (BYTES, Scalar.BYTES): Conversion.TEXT,
        (INTEGER, Scalar.INT): Conversion.INTEGER,
        (LONG, Scalar.INT): Conversion.LONG,
        (DOUBLE, Scalar.FLOAT): Conversion.SERDE,
    }
    for (known_serde, known_kind), serialization in serializations.items():
        if serde is known_serde and kind in (known_kind, Scalar.NOTHING):
            return serialization
    if writes_json(serde) and kind is not Scalar.BYTES:
        return Conversion.SERDE
    named = "an object" if isinstance(kind, Structure) else kind.value
    raise RunsInPython(f"{serde!r} writes {named}")
