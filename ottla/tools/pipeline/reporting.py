"""Reports a running pipeline: a file for `ottla pipeline status`, and /metrics for Prometheus."""

import os
import platform
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any

from ottla.metrics.exposition import Family
from ottla.streams.application.metrics_server import MetricsEndpoint
from ottla.streams.application.pipeline_status import (
    FAILED,
    RUNNING,
    STOPPED,
    PipelineStatus,
    RecordRate,
    SinkStatus,
    families,
)
from ottla.streams.pipelines.model import Pipeline, TopicSource
from ottla.tools.output import note
from ottla.tools.pipeline import state_files

_LOOK_S = 2.0


def sink_statuses(pipeline: Pipeline, sinks: dict[str, Any]) -> Iterator[SinkStatus]:
    """Return the counts of a run's sinks."""
    has_topic = {
        source.name
        for source in pipeline.sources.values()
        if isinstance(source, TopicSource) and source.bad_topic is not None
    }
    for name, run in list(sinks.items()):
        bad = dict(run.bad_by_source)
        yield SinkStatus(
            sink=name,
            records=run.rows,
            lag=run.progress.lag,
            skipped=sum(count for source, count in bad.items() if source not in has_topic),
            dead_letters=sum(count for source, count in bad.items() if source in has_topic),
            batch=run.progress.batch,
            batch_ms=run.progress.batch_ms,
            batch_ended_ms=run.batch_ended_ms,
        )


class PipelineReporter:
    """Writes the status of one run until its end; a context manager.

    `start` may be called once, when the queries run. An error that ends the context is reported as
    the state failed.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        checkpoint: str,
        listener: str | None,
        process: int | None = None,
    ) -> None:
        now_ms = time.time_ns() // 1_000_000
        self._pipeline = pipeline
        self._status = PipelineStatus(
            pipeline=pipeline.name,
            host=platform.node(),
            process=process or os.getpid(),
            checkpoint=checkpoint,
            started_ms=now_ms,
            at_ms=now_ms,
        )
        self._endpoint = None if listener is None else MetricsEndpoint(listener, self._families)
        self._look: Callable[[], dict[str, Any]] = dict
        self._rates: dict[str, RecordRate] = defaultdict(RecordRate)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_writable = True

    def __enter__(self) -> "PipelineReporter":
        """Listen for scrapes, and write the first status; ConfigError if the address is taken."""
        if self._endpoint is not None:
            address = self._endpoint.start()
            self._status = replace(self._status, metrics=address)
            note(f"Metrics are on http://{address}/metrics.")
        self._write()
        return self

    def start(self, look: Callable[[], dict[str, Any]]) -> None:
        """Report the sinks that `look` returns, every few seconds."""
        self._look = look
        self._refresh(RUNNING)
        self._thread = threading.Thread(target=self._run, name="pipeline-status", daemon=True)
        self._thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the last status."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        is_failure = isinstance(error, Exception)
        self._refresh(FAILED if is_failure else STOPPED, str(error) if is_failure else "")
        if self._endpoint is not None:
            self._endpoint.stop()

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            self._refresh(RUNNING)

    def _refresh(self, state: str, error: str = "") -> None:
        now_s = time.monotonic()
        sinks = tuple(
            replace(row, records_per_s=self._rate(row, now_s) if state == RUNNING else 0.0)
            for row in sink_statuses(self._pipeline, self._look())
        )
        at_ms = time.time_ns() // 1_000_000
        self._status = replace(
            self._status, state=state, error=error, at_ms=at_ms, sinks=sinks or self._status.sinks
        )
        self._write()

    def _rate(self, row: SinkStatus, now_s: float) -> float:
        return round(self._rates[row.sink].add(now_s, row.records), 1)

    def _write(self) -> None:
        if not self._is_writable:
            return
        try:
            state_files.write(self._status)
        except OSError as error:
            # The records are more important than the report about them.
            self._is_writable = False
            note(f"The status is not written, set OTTLA_STATE_DIR: {error}.")

    def _families(self) -> Iterator[Family]:
        return families(self._status)
