"""Counts of records that the tasks of a sink drop, sent to the driver when a micro-batch is
committed.

Spark's observations do not include the sink. A task returns its counts in its commit message. Spark
commits in another process on the driver's machine, which appends the counts of the micro-batch to a
file as a line of JSON. The driver reads the new lines.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class SinkCounts:
    """The number of dropped records, by the number of the task that processed them; by topic if the
    broker rejected them.
    """

    tasks: Counter[int] = field(default_factory=Counter)
    topics: Counter[str] = field(default_factory=Counter)

    def add(self, other: "SinkCounts") -> None:
        """Add the counts of others."""
        self.tasks.update(other.tasks)
        self.topics.update(other.topics)


def append_counts(path: str, counts: Iterable[SinkCounts]) -> None:
    """Append the total of the tasks' counts to a file, unless the counts are empty."""
    total = SinkCounts()
    for part in counts:
        total.add(part)
    if not total.tasks and not total.topics:
        return
    line = json.dumps({"tasks": total.tasks, "topics": total.topics})
    # The micro-batch is committed already: it must not fail because of its counts.
    with contextlib.suppress(OSError), Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


class SinkCountsFile:
    """Reads the counts that a query's micro-batches appended to a file."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._position = 0

    def take(self) -> SinkCounts:
        """Return the counts that were appended since the last call."""
        result = SinkCounts()
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._position += len(line)
                row = json.loads(line)
                tasks = Counter({int(task): count for task, count in row["tasks"].items()})
                result.add(SinkCounts(tasks, Counter(row["topics"])))
        return result
