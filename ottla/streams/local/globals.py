"""Global stores: each worker reads their topics completely before it joins, then as they grow.

One task fills the stores; the worker's other tasks open the same maps.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ottla.base.errors import OttlaError
from ottla.client.records import TopicPartition
from ottla.streams.local.inputs import Arrived, PartitionReader
from ottla.streams.model.raw import ProducedRecord
from ottla.streams.stores.ordered import MemoryBytes, OrderedBytes
from ottla.streams.task.task import Task, TaskSettings
from ottla.streams.topology.topology import Source, Topology

Spans = Mapping[TopicPartition, tuple[int, int]]
_POLL_RECORDS = 2_000
_POLL_S = 0.1


class GlobalState:
    """The global stores of a worker. For one thread."""

    def __init__(
        self,
        topology: Topology,
        settings: TaskSettings,
        clock: Callable[[], int],
        open_reader: Callable[[], PartitionReader],
        find_spans: Callable[[list[str]], Spans],
        has_stopped: Callable[[], bool],
    ) -> None:
        self.clock = clock
        self.names = frozenset(topology.global_stores)
        self._maps: dict[str, OrderedBytes] = {}
        self._open_reader, self._find_spans = open_reader, find_spans
        self._has_stopped = has_stopped
        self._reader: PartitionReader | None = None
        self._topics = [
            topic
            for node in topology.nodes.values()
            if isinstance(node, Source) and node.is_global
            for topic in node.topics
        ]
        self._task: Task | None = None
        if self.names:
            cut = _global_part(topology)
            self._task = Task(cut, settings, _no_output, clock, self.open_map)

    def open_map(self, name: str) -> OrderedBytes:
        """Return the map of a name; equal names are the same map."""
        return self._maps.setdefault(name, MemoryBytes())

    def fill(self) -> None:
        """Read the topics to their present ends."""
        if self._task is None:
            return
        spans = self._find_spans(self._topics)
        self._reader = self._open_reader()
        self._reader.add({key: first for key, (first, _) in spans.items()})
        left = {key: end for key, (first, end) in spans.items() if end > first}
        while left and not self._has_stopped():
            for key, position in self._take(_POLL_S).items():
                if position >= left.get(key, position + 1):
                    del left[key]

    def read(self) -> None:
        """Read what has arrived since."""
        if self._reader is not None:
            self._take(0.0)

    def _take(self, timeout_s: float) -> dict[TopicPartition, int]:
        assert self._reader is not None
        assert self._task is not None
        positions = {}
        for row in self._reader.poll(_POLL_RECORDS, timeout_s):
            if isinstance(row, Arrived):
                self._task.add(row.key.topic, row.record)
                positions[row.key] = row.record.offset + 1
            else:
                positions[row.key] = row.offset
        return positions

    def close(self) -> None:
        """Close the reader."""
        if self._reader is not None:
            self._reader.close()


def _no_output(record: ProducedRecord) -> None:
    raise OttlaError(f"the processor of a global store wrote a record to {record.topic}")


def _global_part(topology: Topology) -> Topology:
    names = set()
    for group in topology.subtopologies():
        if any(isinstance(node, Source) and node.is_global for node in group):
            names |= {node.name for node in group}
    return replace(
        topology,
        nodes={name: node for name, node in topology.nodes.items() if name in names},
        stores={},
        connected={name: rows for name, rows in topology.connected.items() if name in names},
    )
