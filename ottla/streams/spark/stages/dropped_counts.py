"""Counts of the records that a query's tasks dropped and of misplaced keys (placement.py), sent
from its workers to the driver with each micro-batch.

A task adds envelopes without records to its output (envelopes.py). Spark observes these envelopes
before the sink and reports them with the progress of the micro-batch, so a repeated micro-batch is
counted once. Records that are dropped in the sink are counted in a file (sink_counts.py): records
that brokers reject, and records that a query in the JVM drops.

Not done: the task of a record that the broker rejects is not known in the sink; the first task of
the sub-topology that writes the topic counts it. A record of a global topic is counted once for
each query that reads it. Misplaced keys of topics that match a pattern are counted together, under
an empty name.
"""

import json
from collections import Counter
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from ottla.streams.layout.internal_topics import changelogs_of
from ottla.streams.layout.layout import Layout, SubTopology
from ottla.streams.spark.connector.sink_counts import SinkCountsFile
from ottla.streams.spark.layout.envelopes import DROPPED_TOPIC, MISPLACED_TOPIC
from ottla.streams.topology.topology import Sink

_OBSERVED = "ottla"
_COUNTS = "dropped"


def count_dropped(rows: DataFrame) -> DataFrame:
    """Observe the counts among a query's envelopes, and filter them out before the sink."""
    is_count = F.col("topic").isin(DROPPED_TOPIC, MISPLACED_TOPIC)
    count = F.when(is_count, F.struct("topic", "origin", "sequence"))
    return rows.observe(_OBSERVED, F.collect_list(count).alias(_COUNTS)).where(~is_count)


class DroppedCounts:
    """Adds up the counts of one query, by task.

    Call `take` often enough that Spark still has the progress of every micro-batch. `first` is the
    number of the query's first sub-topology, `sink_counts_path` the file with the counts of its
    sink.
    """

    def __init__(self, layout: Layout, first: int = 0, sink_counts_path: str | None = None) -> None:
        self._layout = layout
        self._first = first
        self._sink_counts = None if sink_counts_path is None else SinkCountsFile(sink_counts_path)
        self._batch = -1
        self._counts: Counter[int] = Counter()
        self._topics = sorted(layout.routes)
        self.misplaced: Counter[str] = Counter()
        """The number of misplaced keys among the checked ones, by topic, as of the last `take`."""

    def take(self, query: StreamingQuery) -> dict[str, int]:
        """Return the number of records that each task has dropped so far, by Kafka's task ids, such
        as 0_1.
        """
        recent: Any = query._jsq.recentProgress()
        newest = self._batch
        for index in range(len(recent) - 1, -1, -1):
            progress = recent[index]
            batch = progress.batchId()
            if batch <= self._batch:
                break
            newest = max(newest, batch)
            self._add(progress.observedMetrics().get(_OBSERVED))
        self._batch = newest
        self.take_sink_counts()
        return {self._id(task): count for task, count in sorted(self._counts.items())}

    def take_sink_counts(self) -> None:
        """Add the counts of the sink; the query may have stopped."""
        if self._sink_counts is None:
            return
        counts = self._sink_counts.take()
        self._counts.update(counts.tasks)
        for topic, count in counts.topics.items():
            self._counts[self._writer_of(topic)] += count

    def _writer_of(self, topic: str) -> int:
        """Return the first task of the sub-topology that writes a topic, by name if one does."""
        parts = self._layout.sub_topologies
        named = (part for part in parts if topic in _written_topics(part))
        return next(named, parts[0]).first_task

    def _add(self, row: Any) -> None:
        if row is not None:
            for count in json.loads(row.json())[_COUNTS]:
                number = count["origin"]
                if count["topic"] == DROPPED_TOPIC:
                    self._counts[number] += count["sequence"]
                else:
                    topic = self._topics[number] if number < len(self._topics) else ""
                    self.misplaced[topic] += count["sequence"]

    def _id(self, task: int) -> str:
        sub_topology = self._layout.sub_topology_of(task)
        number = self._first + self._layout.sub_topologies.index(sub_topology)
        return f"{number}_{task - sub_topology.first_task}"


def _written_topics(part: SubTopology) -> set[str]:
    """Return the topics that a sub-topology writes by name."""
    nodes = part.topology.nodes.values()
    sinks = (node.topic for node in nodes if isinstance(node, Sink))
    name = part.application.topic_name
    topics = {name(topic) for topic in sinks if isinstance(topic, str)}
    return topics | set(changelogs_of(part.application, part.topology.stores))
