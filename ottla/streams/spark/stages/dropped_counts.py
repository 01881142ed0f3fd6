"""How many records the tasks of a query dropped: from its workers to the driver, with each micro-batch.

A task puts an envelope without records among its output (envelopes.py). Spark observes these before the sink, and
reports what it observed with the progress of the micro-batch; so a micro-batch that is run again counts once.

Not done: what is dropped where a query without state runs in the JVM (column_frame.py) is logged by the workers and not
counted: its rows are no envelopes.
"""

import json
from collections import Counter
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from ottla.streams.spark.layout.envelopes import DROPPED_TOPIC
from ottla.streams.spark.layout.layout import Layout

_OBSERVED = "ottla"
_COUNTS = "dropped"


def count_dropped(rows: DataFrame) -> DataFrame:
    """Observe the counts among the envelopes of a query, and take them out of what goes to the sink."""
    is_count = F.col("topic") == DROPPED_TOPIC
    count = F.when(is_count, F.struct("origin", "sequence"))
    return rows.observe(_OBSERVED, F.collect_list(count).alias(_COUNTS)).where(~is_count)


class DroppedCounts:
    """Adds up the counts of one query, by task; to be asked while Spark still has the progress of all micro-batches.

    `first` is the number of the query's first sub-topology.
    """

    def __init__(self, layout: Layout, first: int = 0) -> None:
        self._layout = layout
        self._first = first
        self._batch = -1
        self._counts: Counter[int] = Counter()

    def take(self, query: StreamingQuery) -> dict[str, int]:
        """Return how many records each task dropped so far, by Kafka's ids of tasks, such as 0_1."""
        recent: Any = query._jsq.recentProgress()
        newest = self._batch
        for place in range(len(recent) - 1, -1, -1):
            progress = recent[place]
            batch = progress.batchId()
            if batch <= self._batch:
                break
            newest = max(newest, batch)
            self._add(progress.observedMetrics().get(_OBSERVED))
        self._batch = newest
        return {self._id(task): count for task, count in sorted(self._counts.items())}

    def _add(self, row: Any) -> None:
        if row is not None:
            for each in json.loads(row.json())[_COUNTS]:
                self._counts[each["origin"]] += each["sequence"]

    def _id(self, task: int) -> str:
        kind = self._layout.kind_of(task)
        number = self._first + self._layout.kinds.index(kind)
        return f"{number}_{task - kind.first_task}"
