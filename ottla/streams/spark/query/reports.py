"""Converts Spark's report of a query's last micro-batch to Progress."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress

from ottla.streams.application.progress import Progress
from ottla.streams.spark.connector.ranges import Offsets, from_json
from ottla.streams.spark.stages.topology_source import CLOCK_TOPIC

# Until the first record arrives.
_NO_WATERMARK = "1970-01-01T00:00:00.000"


def progress_of(report: StreamingQueryProgress, firsts: list[Offsets]) -> Progress:
    """Return the progress of one query.

    `firsts` keeps the starting offsets of each source, from the first report on.
    """
    if not firsts:
        firsts += [_offsets(source.startOffset) for source in report.sources]
    records = lag = 0
    for source, first in zip(report.sources, firsts, strict=False):
        end, latest = _offsets(source.endOffset), _offsets(source.latestOffset)
        records += sum(offset - first.get(key, 0) for key, offset in end.items())
        lag += sum(max(0, offset - end.get(key, 0)) for key, offset in latest.items())
    watermark = (report.eventTime or {}).get("watermark", "")
    state = sum(stateOperator.memoryUsedBytes for stateOperator in report.stateOperators)
    return Progress(
        batch=report.batchId,
        records=records,
        lag=lag,
        watermark="" if watermark.startswith(_NO_WATERMARK) else watermark,
        state_bytes=state + _on_disk(report.stateOperators),
        batch_ms=report.batchDuration,
    )


def total(parts: Iterable[Progress]) -> Progress:
    """Return the total progress of several queries; the watermark is the earliest of theirs."""
    result = Progress()
    for part in parts:
        marks = [mark for mark in (result.watermark, part.watermark) if mark]
        result = Progress(
            batch=max(result.batch, part.batch),
            records=result.records + part.records,
            lag=result.lag + part.lag,
            watermark=min(marks, default=""),
            state_bytes=result.state_bytes + part.state_bytes,
            batch_ms=max(result.batch_ms, part.batch_ms),
        )
    return result


def _on_disk(operators: Sequence[Any]) -> int:
    return sum(int(operator.customMetrics.get("rocksdbSstFileSize", 0)) for operator in operators)


def _offsets(reported: Any) -> Offsets:
    """Return offsets from Spark's progress report; empty for a source that is not Ottla's."""
    try:
        document = json.loads(reported) if isinstance(reported, str) else reported
        offsets = from_json(document)
    except (ValueError, TypeError, AttributeError):
        return {}
    offsets.pop((CLOCK_TOPIC, 0), None)
    return offsets
