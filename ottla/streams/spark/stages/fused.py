"""Fused stateless sub-topologies: each step's function calls the next one's directly, batch by
batch.

A task (streams/task/task.py) makes an object of each record and passes it from node to node, with
its clocks and handlers. If all steps are functions of key and value, none of that is visible to
them. Fused steps pass only keys and values from function to function; timestamps and headers stay
in their Arrow columns. A record that a source's serde cannot deserialize is processed by a task
instead. One that a sink's serde cannot serialize goes to the exception handlers, in its place in
the order. No function is called twice for a record.

Each step has a code object of its own, named like its node: the traceback of an error shows the
node, and the interpreter specializes each step separately.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.streams.layout.layout import SubTopology
from ottla.streams.model.raw import ProducedRecord, TopicRecord
from ottla.streams.model.records import Record, RecordMetadata
from ottla.streams.model.user_errors import frames_of, note_record
from ottla.streams.operators import stateless
from ottla.streams.serdes import Serde, resolve
from ottla.streams.serdes.serde import STRING
from ottla.streams.settings.handlers import SerializationOrigin
from ottla.streams.spark.layout.envelopes import RECORDS, batch_of, topic_records
from ottla.streams.task.dropped_records import DroppedRecords
from ottla.streams.task.edges import UNFIT
from ottla.streams.task.task import Task
from ottla.streams.topology.topology import ProcessorNode, Sink, Source, TopologyNode
from ottla.wire.records.columnar_varints import Integers

Deliver = Callable[[Any, Any], Any]


@dataclass
class _Written:
    """Output for one topic: keys, values, and the row numbers of the source records."""

    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    row_numbers: list[int] = field(default_factory=list)

    def clear(self) -> None:
        """Clear the lists in place: steps have references to them."""
        self.keys.clear()
        self.values.clear()
        self.row_numbers.clear()


@dataclass(frozen=True)
class _Chain:
    """The processing of a topic: its source node, the serdes of key and value, and the first step."""

    source: str
    key: Serde[Any]
    value: Serde[Any]
    deliver: Deliver


class _Unfused(Exception):
    """The step needs a task."""


@dataclass(frozen=True)
class TopicOutput:
    """Output of a batch for one topic: RECORDS, and the row number of each record's source record."""

    topic: str
    row_numbers: Integers
    records: pa.RecordBatch


class PlainTask:
    """Runs a stateless sub-topology."""

    def __init__(
        self,
        sub_topology: SubTopology,
        clock: Callable[[], int],
        dropped: DroppedRecords | None = None,
    ) -> None:
        self._sub_topology = sub_topology
        self._produced: list[ProducedRecord] = []
        # The row numbers of the source records of `_produced`, as far as they are noted.
        self._row_numbers: list[int] = []
        settings = sub_topology.application.settings
        self._task = Task(
            sub_topology.topology, settings, self._produced.append, clock, dropped=dropped
        )
        self._written: dict[str, _Written] = {}
        self._row_number = 0
        self._topic = ""
        self._records = batch_of([])
        self._rows: list[TopicRecord] | None = None
        self._chains: dict[str, _Chain] = {}
        self._nodes: dict[CodeType, str] = {}
        if not settings.exception_handlers.sees_processing:
            self._fuse()

    @property
    def dropped_count(self) -> int:
        """The number of records dropped so far."""
        return self._task.dropped.total

    def run(self, topic: str, records: pa.RecordBatch) -> Iterator[TopicOutput]:
        """Yield the output for records (RECORDS) of a topic, in their order.

        Errors of functions are raised with a note of the record and the node.
        """
        self._produced.clear()
        self._row_numbers.clear()
        self._topic, self._records, self._rows = topic, records, None
        chain = self._chains.get(topic)
        times = np.asarray(records.column("timestamp"))
        if chain is None or (len(times) and times.min() < 0):
            for self._row_number in range(records.num_rows):
                self._take()
            yield from self._gathered()
            return
        for written in self._written.values():
            written.clear()
        self._fused(chain, records)
        yield from self._gathered(records)

    def _row(self) -> TopicRecord:
        """Return the current record; records are made when the first one is needed."""
        if self._rows is None:
            self._rows = list(topic_records(self._records))
        return self._rows[self._row_number]

    def _take(self) -> None:
        """Process the current record in the task."""
        self._task.add(self._topic, self._row())
        self._task.process_next()
        self._note_row_numbers()

    def _note_row_numbers(self) -> None:
        self._row_numbers += [self._row_number] * (len(self._produced) - len(self._row_numbers))

    def _fused(self, chain: _Chain, records: pa.RecordBatch) -> None:
        """Run records through the fused functions."""
        read_key, keys = _reading(chain.key, records.column("key"))
        read_value, values = _reading(chain.value, records.column("value"))
        deliver, count = chain.deliver, records.num_rows
        try:
            if read_key is None and read_value is None:
                for row in range(count):
                    self._row_number = row
                    deliver(keys[row], values[row])
                return
            for row in range(count):
                self._row_number = row
                key, value = keys[row], values[row]
                try:
                    key = key if key is None or read_key is None else read_key(key)
                    value = value if value is None or read_value is None else read_value(value)
                except UNFIT:
                    self._take()
                    continue
                deliver(key, value)
        except Exception as error:
            note_record(error, self._metadata(), self._node_of(error, chain.source))
            raise

    def _metadata(self) -> RecordMetadata:
        row = self._row()
        return RecordMetadata(self._topic, row.partition, row.offset)

    def _node_of(self, error: Exception, source: str) -> str:
        """Return the name of the innermost node in an error's traceback."""
        results = [self._nodes.get(frame.f_code) for frame in frames_of(error)]
        return next((name for name in reversed(results) if name is not None), source)

    def _unwritten(
        self, sink: Sink, topic: str, record: tuple[Any, Any], error: Exception, is_key: bool
    ) -> None:
        """Pass a record that cannot be serialized to the exception handler; raise
        SerializationError if it says FAIL.
        """
        row = self._row()
        with self._task.at((self._metadata(), row, row.timestamp, row.headers)):
            self._task.handle_unwritable(
                sink,
                topic,
                Record(*record, row.timestamp, row.headers),
                error,
                SerializationOrigin.KEY if is_key else SerializationOrigin.VALUE,
            )
        self._note_row_numbers()

    def _gathered(self, records: pa.RecordBatch | None = None) -> Iterator[TopicOutput]:
        """Yield the output by topic: the output of the fused functions for `records`, and the
        task's.
        """
        by_topic: dict[str, tuple[list[int], list[ProducedRecord]]] = {}
        for row, produced in zip(self._row_numbers, self._produced, strict=True):
            numbers_and_records = by_topic.setdefault(produced.topic, ([], []))
            numbers_and_records[0].append(row)
            numbers_and_records[1].append(produced)
        written = {} if records is None else self._written
        for topic in (*written, *(name for name in by_topic if name not in written)):
            parts = []
            if records is not None and topic in written and written[topic].row_numbers:
                parts.append(_columns(topic, written[topic], records))
            if topic in by_topic:
                own, rows = by_topic[topic]
                parts.append(TopicOutput(topic, np.array(own, np.int64), batch_of(rows)))
            if parts:
                yield _merged(parts)

    def _fuse(self) -> None:
        topology = self._sub_topology.topology
        children: dict[str, list[TopologyNode]] = {}
        for node in topology.nodes.values():
            for parent in () if isinstance(node, Source) else node.parents:
                children.setdefault(parent, []).append(node)
        settings = self._sub_topology.application.settings
        defaults = settings.defaults
        for node in topology.nodes.values():
            if not isinstance(node, Source):
                continue
            extractor = node.timestamp_extractor or settings.default_timestamp_extractor
            if extractor is not None or node.carries_changes:
                continue
            try:
                deliver = _forwarding(
                    [self._step(child, children) for child in children[node.name]]
                )
            except (_Unfused, KeyError):
                continue
            serdes = resolve(node.key, defaults.key), resolve(node.value, defaults.value)
            chain = _Chain(node.name, *serdes, deliver)
            for topic in node.topics:
                self._chains[self._sub_topology.application.topic_name(topic)] = chain

    def _step(self, node: TopologyNode, children: dict[str, list[TopologyNode]]) -> Deliver:
        """Return the function that processes a key and a value at a node."""
        if isinstance(node, Sink):
            return self._named(node.name, self._sink(node))
        assert isinstance(node, ProcessorNode)
        below = {child.name: self._step(child, children) for child in children.get(node.name, [])}
        supplier: Any = node.supplier
        if isinstance(supplier, stateless.Branch):
            return self._named(node.name, _branching(supplier, below))
        forward = _forwarding(list(below.values()))
        if isinstance(supplier, stateless.KeyFilter):
            return self._named(node.name, self._key_filter(node.name, forward))
        make_step = _STEPS.get(type(supplier))
        if make_step is None:
            raise _Unfused
        return self._named(node.name, make_step(supplier, forward))

    def _key_filter(self, name: str, forward: Deliver) -> Deliver:
        dropped = self._task.dropped

        def step(key: Any, value: Any) -> None:
            if key is None:
                dropped.drop(name, stateless.NULL_KEY, self._metadata(), {})
            else:
                forward(key, value)

        return step

    def _named(self, node: str, step: Deliver) -> Deliver:
        """Return a step with a code object of its own, by which its node is found."""
        assert isinstance(step, FunctionType), "steps are functions of this module"
        if step.__code__ in self._nodes:
            # A step that only forwards is the next step itself.
            return step
        code = step.__code__.replace(co_name=node)
        self._nodes[code] = node
        return FunctionType(code, step.__globals__, node, step.__defaults__, step.__closure__)

    def _sink(self, sink: Sink) -> Deliver:
        if not isinstance(sink.topic, str) or sink.partitioner is not None or sink.carries_changes:
            raise _Unfused
        settings = self._sub_topology.application.settings
        topic = self._sub_topology.application.topic_name(sink.topic)
        key_serde = resolve(sink.key, settings.defaults.key).of(topic, is_key=True)
        value_serde = resolve(sink.value, settings.defaults.value).of(topic, is_key=False)
        written = self._written.setdefault(topic, _Written())
        write_key, write_value = key_serde.serialize, value_serde.serialize
        # The lists are cleared in place, so these methods remain valid.
        add_key, add_value = written.keys.append, written.values.append
        add_row_number = written.row_numbers.append

        def write(key: Any, value: Any) -> None:
            try:
                sent = None if key is None else write_key(key)
            except UNFIT as error:
                self._unwritten(sink, topic, (key, value), error, is_key=True)
                return
            try:
                add_value(None if value is None else write_value(value))
            except UNFIT as error:
                self._unwritten(sink, topic, (key, value), error, is_key=False)
                return
            add_key(sent)
            add_row_number(self._row_number)

        return write


def _reading(
    serde: Serde[Any], column: pa.Array
) -> tuple[Callable[[bytes], Any] | None, list[Any]]:
    """Return the column's values, and the function that deserializes them; None if they are
    deserialized already.
    """
    if serde is STRING:
        try:
            return None, column.cast(pa.string()).to_pylist()
        except pa.ArrowInvalid:
            # One of the values is not valid UTF-8.
            pass
    return serde.deserialize, column.to_pylist()


def _columns(topic: str, written: _Written, records: pa.RecordBatch) -> TopicOutput:
    count = len(written.row_numbers)
    row_numbers = np.array(written.row_numbers, np.int64)
    chosen = pa.array(row_numbers)
    headers = records.column("headers")
    columns = [
        pa.array(np.full(count, -1, np.int32)),
        pa.array(np.zeros(count, np.int64)),
        records.column("timestamp").take(chosen),
        pa.array(written.keys, pa.binary()),
        pa.array(written.values, pa.binary()),
        pa.nulls(count, headers.type)
        if headers.null_count == len(headers)
        else headers.take(chosen),
    ]
    return TopicOutput(topic, row_numbers, pa.RecordBatch.from_arrays(columns, schema=RECORDS))


def _merged(parts: list[TopicOutput]) -> TopicOutput:
    """Merge the output of functions and task in the order of the source records."""
    if len(parts) == 1:
        return parts[0]
    row_numbers = np.concatenate([part.row_numbers for part in parts])
    order = np.argsort(row_numbers, kind="stable")
    table = pa.Table.from_batches([part.records for part in parts]).combine_chunks()
    (batch,) = table.take(pa.array(order)).to_batches()
    return TopicOutput(parts[0].topic, row_numbers[order], batch)


def _forwarding(children: list[Deliver]) -> Deliver:
    if len(children) == 1:
        return children[0]

    def forward(key: Any, value: Any) -> None:
        for child in children:
            child(key, value)

    return forward


def _branching(branch: stateless.Branch, below: dict[str, Deliver]) -> Deliver:
    arms = [
        (predicate, below[child])
        for predicate, child in zip(branch.predicates, branch.children, strict=True)
    ]
    otherwise = None if branch.default_child is None else below[branch.default_child]

    def step(key: Any, value: Any) -> None:
        for predicate, child in arms:
            if predicate(key, value):
                child(key, value)
                return
        if otherwise is not None:
            otherwise(key, value)

    return step


def _filter(operator: stateless.Filter, forward: Deliver) -> Deliver:
    predicate = operator.predicate

    def keep(key: Any, value: Any) -> None:
        if predicate(key, value):
            forward(key, value)

    def drop(key: Any, value: Any) -> None:
        if not predicate(key, value):
            forward(key, value)

    return drop if operator.negate else keep


def _map(operator: stateless.Map, forward: Deliver) -> Deliver:
    mapper = operator.mapper

    def step(key: Any, value: Any) -> None:
        pair = mapper(key, value)
        if type(pair) is not tuple:
            pair = stateless.pair_of(pair)
        try:
            key, value = pair
        except ValueError:
            raise stateless.no_pair(pair) from None
        forward(key, value)

    return step


def _flat_map(operator: stateless.FlatMap, forward: Deliver) -> Deliver:
    mapper = operator.mapper

    def step(key: Any, value: Any) -> None:
        for pair in stateless.several(mapper(key, value), stateless.MANY_PAIRS):
            if type(pair) is not tuple:
                pair = stateless.pair_of(pair)
            try:
                each_key, each_value = pair
            except ValueError:
                raise stateless.no_pair(pair) from None
            forward(each_key, each_value)

    return step


def _flat_map_values(operator: stateless.FlatMapValues, forward: Deliver) -> Deliver:
    mapper = operator.mapper

    def step(key: Any, value: Any) -> None:
        for new_value in stateless.several(mapper(key, value), stateless.MANY_VALUES):
            forward(key, new_value)

    return step


def _peek(operator: stateless.Peek, forward: Deliver) -> Deliver:
    action = operator.action
    if operator.ends:
        # The lambda has a Python frame that identifies the node; the action may be a builtin.
        return lambda key, value: action(key, value)

    def step(key: Any, value: Any) -> None:
        action(key, value)
        forward(key, value)

    return step


def _select_key(operator: stateless.SelectKey, forward: Deliver) -> Deliver:
    mapper = operator.mapper
    return lambda key, value: forward(mapper(key, value), value)


def _map_values(operator: stateless.MapValues, forward: Deliver) -> Deliver:
    mapper = operator.mapper
    return lambda key, value: forward(key, mapper(key, value))


_STEPS: dict[type[Any], Callable[[Any, Deliver], Deliver]] = {
    stateless.Filter: _filter,
    stateless.Map: _map,
    stateless.FlatMap: _flat_map,
    stateless.FlatMapValues: _flat_map_values,
    stateless.PassThrough: lambda _, forward: forward,
    stateless.Peek: _peek,
    stateless.SelectKey: _select_key,
    stateless.MapValues: _map_values,
}
