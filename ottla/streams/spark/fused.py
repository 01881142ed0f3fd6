"""Sub-topologies that keep nothing, fused: the functions of their steps called one inside the other, batch by batch.

A task (runtime.py) makes a record of what it reads and hands it from node to node, with its clocks and handlers. Where all
steps are functions of key and value none of that is seen: here keys and values go from function to function, and
times and headers stay in the columns that they came in. A record that a serde does not take goes to a task after all,
which knows what to do; its functions are then called twice.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.streams.edges import UNFIT
from ottla.streams.operators import stateless
from ottla.streams.raw import ProducedRecord
from ottla.streams.runtime import Task
from ottla.streams.serdes import Serde, resolve
from ottla.streams.serdes.serde import STRING
from ottla.streams.spark.envelopes import RECORDS, batch_of, topic_records
from ottla.streams.spark.layout import Kind
from ottla.streams.topology import ProcessorNode, Sink, Source, TopologyNode
from ottla.wire.records.columnar_varints import Integers

Deliver = Callable[[Any, Any], Any]


@dataclass
class _Written:
    """What was written to a topic: keys, values and the places of the records that they came of."""

    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def cut(self, place: int) -> None:
        """Forget what came of a record and those behind it."""
        end = bisect_left(self.places, place)
        del self.keys[end:], self.values[end:], self.places[end:]


class _Unfused(Exception):
    """A step that needs a task."""


@dataclass(frozen=True)
class Made:
    """What came of a batch, of one topic: RECORDS, and the places of the records that each came of."""

    topic: str
    places: Integers
    records: pa.RecordBatch


class PlainTask:
    """Runs a sub-topology that keeps nothing."""

    def __init__(self, kind: Kind, clock: Callable[[], int]) -> None:
        self._kind = kind
        self._produced: list[ProducedRecord] = []
        settings = kind.application.settings
        self._task = Task(kind.topology, settings, self._produced.append, clock)
        self._written: dict[str, _Written] = {}
        self._place = 0
        self._chains: dict[str, tuple[Serde[Any], Serde[Any], Deliver]] = {}
        if not settings.exception_handlers.sees_processing:
            self._fuse()

    def run(self, topic: str, records: pa.RecordBatch) -> Iterator[Made]:
        """Return what comes of records (RECORDS) of a topic, in their order."""
        chain = self._chains.get(topic)
        times = np.asarray(records.column("timestamp"))
        if chain is None or (len(times) and times.min() < 0):
            yield from self._gathered(*self._singly(topic, records, range(records.num_rows)))
            return
        raised = self._fused(chain, records)
        if raised:
            yield from self._gathered(*self._singly(topic, records, raised), records)
        else:
            yield from self._gathered([], [], records)

    def _singly(
        self, topic: str, records: pa.RecordBatch, places: Sequence[int]
    ) -> tuple[list[int], list[ProducedRecord]]:
        """Let the task take records one by one; return what it wrote, and of which records."""
        self._produced.clear()
        found: list[int] = []
        whole = len(places) == records.num_rows
        chosen = records if whole else records.take(pa.array(places, pa.int64()))
        for place, record in zip(places, topic_records(chosen), strict=True):
            self._task.add(topic, record)
            self._task.process_next()
            found += [place] * (len(self._produced) - len(found))
        return found, list(self._produced)

    def _fused(
        self, chain: tuple[Serde[Any], Serde[Any], Deliver], records: pa.RecordBatch
    ) -> list[int]:
        """Run records through functions; return the places of those at which something was raised."""
        for each in self._written.values():
            each.cut(0)
        key_serde, value_serde, deliver = chain
        read_key, keys = _reading(key_serde, records.column("key"))
        read_value, values = _reading(value_serde, records.column("value"))
        raised: list[int] = []
        place, count = 0, records.num_rows
        while place < count:
            try:
                for place in range(place, count):  # noqa: B020  goes on behind what was raised
                    key, value = keys[place], values[place]
                    self._place = place
                    deliver(
                        key if key is None or read_key is None else read_key(key),
                        value if value is None or read_value is None else read_value(value),
                    )
                return raised
            except UNFIT:
                # A serde's, for the task and its handlers; or a function's, which it raises again.
                for each in self._written.values():
                    each.cut(place)
                raised.append(place)
                place += 1
        return raised

    def _gathered(
        self,
        places: list[int],
        produced: list[ProducedRecord],
        records: pa.RecordBatch | None = None,
    ) -> Iterator[Made]:
        """Return by topic what functions wrote of `records`, and what the task wrote."""
        by_topic: dict[str, tuple[list[int], list[ProducedRecord]]] = {}
        for place, each in zip(places, produced, strict=True):
            held = by_topic.setdefault(each.topic, ([], []))
            held[0].append(place)
            held[1].append(each)
        written = {} if records is None else self._written
        for topic in (*written, *(each for each in by_topic if each not in written)):
            parts = []
            if records is not None and topic in written and written[topic].places:
                parts.append(_columns(topic, written[topic], records))
            if topic in by_topic:
                own, rows = by_topic[topic]
                parts.append(Made(topic, np.array(own, np.int64), batch_of(rows)))
            if parts:
                yield _merged(parts)

    def _fuse(self) -> None:
        topology = self._kind.topology
        children: dict[str, list[TopologyNode]] = {}
        for node in topology.nodes.values():
            for parent in () if isinstance(node, Source) else node.parents:
                children.setdefault(parent, []).append(node)
        settings = self._kind.application.settings
        defaults = settings.defaults
        for node in topology.nodes.values():
            if not isinstance(node, Source):
                continue
            extractor = node.timestamp_extractor or settings.default_timestamp_extractor
            if extractor is not None or node.carries_changes:
                continue
            try:
                deliver = _forwarding([self._step(each, children) for each in children[node.name]])
            except (_Unfused, KeyError):
                continue
            serdes = resolve(node.key, defaults.key), resolve(node.value, defaults.value)
            for topic in node.topics:
                self._chains[self._kind.application.topic_name(topic)] = (*serdes, deliver)

    def _step(self, node: TopologyNode, children: dict[str, list[TopologyNode]]) -> Deliver:
        """Return what takes a key and a value at a node."""
        if isinstance(node, Sink):
            return self._sink(node)
        assert isinstance(node, ProcessorNode)
        below = {each.name: self._step(each, children) for each in children.get(node.name, [])}
        supplier: Any = node.supplier
        if isinstance(supplier, stateless.Branch):
            return _branching(supplier, below)
        forward = _forwarding(list(below.values()))
        made = _STEPS.get(type(supplier))
        if made is None:
            raise _Unfused
        return made(supplier, forward)

    def _sink(self, sink: Sink) -> Deliver:
        if not isinstance(sink.topic, str) or sink.partitioner is not None or sink.carries_changes:
            raise _Unfused
        settings = self._kind.application.settings
        topic = self._kind.application.topic_name(sink.topic)
        key_serde = resolve(sink.key, settings.defaults.key).of(topic, is_key=True)
        value_serde = resolve(sink.value, settings.defaults.value).of(topic, is_key=False)
        written = self._written.setdefault(topic, _Written())
        write_key, write_value = key_serde.serialize, value_serde.serialize
        # What was written is forgotten in place: these stay the lists' own.
        add_key, add_value = written.keys.append, written.values.append
        add_place = written.places.append

        def write(key: Any, value: Any) -> None:
            key = None if key is None else write_key(key)
            add_value(None if value is None else write_value(value))
            add_key(key)
            add_place(self._place)

        return write


def _reading(
    serde: Serde[Any], column: pa.Array
) -> tuple[Callable[[bytes], Any] | None, list[Any]]:
    """Return what reads a column's values one by one, None where they are read, and the values."""
    if serde is STRING:
        try:
            return None, column.cast(pa.string()).to_pylist()
        except pa.ArrowInvalid:
            # One of them is no text.
            pass
    return serde.deserialize, column.to_pylist()


def _columns(topic: str, written: _Written, records: pa.RecordBatch) -> Made:
    count = len(written.places)
    places = np.array(written.places, np.int64)
    chosen = pa.array(places)
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
    return Made(topic, places, pa.RecordBatch.from_arrays(columns, schema=RECORDS))


def _merged(parts: list[Made]) -> Made:
    """Return what functions and the task wrote, in the order of what it came of."""
    if len(parts) == 1:
        return parts[0]
    places = np.concatenate([each.places for each in parts])
    order = np.argsort(places, kind="stable")
    table = pa.Table.from_batches([each.records for each in parts]).combine_chunks()
    (batch,) = table.take(pa.array(order)).to_batches()
    return Made(parts[0].topic, places[order], batch)


def _forwarding(children: list[Deliver]) -> Deliver:
    if len(children) == 1:
        return children[0]

    def forward(key: Any, value: Any) -> None:
        for each in children:
            each(key, value)

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
        key, value = mapper(key, value)
        forward(key, value)

    return step


def _flat_map(operator: stateless.FlatMap, forward: Deliver) -> Deliver:
    mapper = operator.mapper

    def step(key: Any, value: Any) -> None:
        for each_key, each in mapper(key, value) or ():
            forward(each_key, each)

    return step


def _flat_map_values(operator: stateless.FlatMapValues, forward: Deliver) -> Deliver:
    mapper = operator.mapper

    def step(key: Any, value: Any) -> None:
        for each in mapper(key, value) or ():
            forward(key, each)

    return step


def _peek(operator: stateless.Peek, forward: Deliver) -> Deliver:
    action = operator.action
    if operator.ends:
        return action

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
