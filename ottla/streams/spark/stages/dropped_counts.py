"""Counts of the records that a query's tasks dropped and of misplaced keys (placement.py), sent
from its workers to the driver with each micro-batch.

A task adds envelopes without records to its output (envelopes.py). Spark observes these envelopes
before the sink and reports them with the progress of the micro-batch, so a repeated micro-batch is
counted once.

Not done: records that a stateless query drops in the JVM (catalyst/frame.py) are logged by the
workers but not counted, because the rows of such a query are not envelopes: the JVM would have to
evaluate each filter a second time for the observation. Misplaced keys of topics that match a
pattern are counted together, under an empty name.
"""

import json
from collections import Counter
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from ottla.streams.spark.layout.envelopes import DROPPED_TOPIC, MISPLACED_TOPIC
from ottla.streams.spark.layout.layout import Layout

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
    number of the query's first sub-topology.
    """

    def __init__(self, layout: Layout, first: int = 0) -> None:
        self._layout = layout
        self._first = first
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
        return {self._id(task): count for task, count in sorted(self._counts.items())}

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
