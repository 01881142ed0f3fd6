"""The state of a running pipeline, for `ottla pipeline status` and /metrics. Pure.

A status is one value for each sink: records, rate, lag, bad records, and the last micro-batch.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ottla.metrics.exposition import Family, Sample, counter, gauge, labels

STARTING, RUNNING, STOPPED, FAILED, LOST = "starting", "running", "stopped", "failed", "lost"
# A process that is alive but does not write is suspended, or its disk is full.
_SILENT_MS = 60_000
_WINDOW_S = 60.0


@dataclass(frozen=True, kw_only=True)
class SinkStatus:
    """The counts of a sink since the start of the run.

    `skipped` and `dead_letters` are bad records of its sources. `lag` is the number of records that
    it has not read. `batch` is -1 before the first micro-batch, and `batch_ended_ms` is 0.
    """

    sink: str
    records: int = 0
    records_per_s: float = 0.0
    lag: int = 0
    skipped: int = 0
    dead_letters: int = 0
    batch: int = -1
    batch_ms: int = 0
    batch_ended_ms: int = 0


@dataclass(frozen=True, kw_only=True)
class PipelineStatus:
    """A run of a pipeline at one time: a process of a host, whose folder other hosts may share.

    `error` is the reason of its failure.
    """

    pipeline: str
    host: str
    process: int
    checkpoint: str
    started_ms: int
    at_ms: int
    state: str = STARTING
    error: str = ""
    metrics: str = ""
    sinks: tuple[SinkStatus, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the status as values of JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "PipelineStatus":
        """Return the status that was written; KeyError, TypeError or ValueError for anything else."""
        fields = dict(document)
        sinks = tuple(SinkStatus(**row) for row in fields.pop("sinks"))
        status = cls(**fields, sinks=sinks)
        numbers = (status.process, status.started_ms, status.at_ms)
        if not all(isinstance(number, int) for number in numbers):
            raise ValueError("process and times are numbers")
        return status

    def state_now(self, now_ms: int, *, is_alive: bool) -> str:
        """Return the state; a run whose process has ended without a last word is lost."""
        if self.state not in (STARTING, RUNNING):
            return self.state
        return self.state if is_alive and now_ms - self.at_ms < _SILENT_MS else LOST


@dataclass
class RecordRate:
    """Records per second in the last minute, of a count that increases."""

    _counts: deque[tuple[float, int]] = field(default_factory=deque)

    def add(self, now_s: float, count: int) -> float:
        """Return the rate with a new count; times are seconds of a monotonic clock."""
        self._counts.append((now_s, count))
        while len(self._counts) > 2 and self._counts[1][0] <= now_s - _WINDOW_S:
            self._counts.popleft()
        since, before = self._counts[0]
        return (count - before) / (now_s - since) if now_s > since else 0.0


def families(status: PipelineStatus) -> Iterator[Family]:
    """Return the metrics of a pipeline."""
    sinks = [(labels(pipeline=status.pipeline, sink=row.sink), row) for row in status.sinks]

    def of(name: str) -> Sequence[Sample]:
        return [(written, getattr(row, name)) for written, row in sinks]

    prefix = "ottla_pipeline_"
    yield gauge(
        f"{prefix}up",
        "1 while the queries run.",
        [(labels(pipeline=status.pipeline), int(status.state == RUNNING))],
    )
    yield counter(f"{prefix}records_total", "Records read since the start.", of("records"))
    yield gauge(
        f"{prefix}records_per_second", "Records read in the last minute.", of("records_per_s")
    )
    yield gauge(f"{prefix}lag", "Records that have not been read.", of("lag"))
    yield counter(f"{prefix}skipped_total", "Bad records that were left out.", of("skipped"))
    yield counter(
        f"{prefix}dead_letters_total", "Bad records for a dead-letter topic.", of("dead_letters")
    )
    yield gauge(f"{prefix}batch", "The last micro-batch, from 0.", of("batch"))
    yield gauge(
        f"{prefix}batch_seconds",
        "The duration of the last micro-batch.",
        [(written, row.batch_ms / 1000) for written, row in sinks],
    )
    yield gauge(
        f"{prefix}last_batch_timestamp_seconds",
        "When the last micro-batch with records ended; 0 before it.",
        [(written, row.batch_ended_ms / 1000) for written, row in sinks],
    )
