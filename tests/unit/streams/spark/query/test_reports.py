"""The progress of an application, computed from Spark's reports."""

import json
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress

from ottla.streams.application.progress import Progress
from ottla.streams.spark.connector.ranges import Offsets
from ottla.streams.spark.query.reports import progress_of, total
from ottla.streams.spark.stages.topology_source import CLOCK_TOPIC


def _report(
    batch: int, start: Any, end: Any, latest: Any, watermark: str
) -> StreamingQueryProgress:
    source = {
        "description": "ottla",
        "startOffset": start,
        "endOffset": end,
        "latestOffset": latest,
        "numInputRows": 3,
        "inputRowsPerSecond": 1.0,
        "processedRowsPerSecond": 1.0,
        "metrics": {},
    }
    report = {
        "id": "6f6a9a5c-0000-0000-0000-000000000000",
        "runId": "6f6a9a5c-0000-0000-0000-000000000001",
        "name": "q",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "batchId": batch,
        "batchDuration": 40,
        "durationMs": {},
        "eventTime": {"watermark": watermark},
        "stateOperators": [],
        "sources": [source],
        "sink": {"description": "s", "numOutputRows": 1, "metrics": {}},
        "numInputRows": 3,
        "inputRowsPerSecond": 1.0,
        "processedRowsPerSecond": 1.0,
        "observedMetrics": {},
    }
    return StreamingQueryProgress.fromJson(report)


def test_records_and_lag_are_computed_from_offsets() -> None:
    """Records count from the first report; the clock is no topic; a new partition counts from 0."""
    firsts: list[Offsets] = []
    start = {"t": {"0": 5}, CLOCK_TOPIC: {"0": 1000}}
    end = {"t": {"0": 9}, CLOCK_TOPIC: {"0": 2000}}
    report = _report(1, start, end, {"t": {"0": 11}}, "1970-01-01T00:00:00.000Z")
    assert progress_of(report, firsts) == Progress(1, 4, 2, "", 0, 40)
    later = {"t": {"0": 12, "1": 3}}
    report = _report(2, end, json.dumps(later), json.dumps(later), "2026-01-01T00:00:00.000Z")
    assert progress_of(report, firsts) == Progress(2, 10, 0, "2026-01-01T00:00:00.000Z", 0, 40)


def test_sources_without_topic_offsets_have_no_lag() -> None:
    """File sources report other offsets."""
    report = _report(1, None, {"logOffset": 3}, None, "")
    assert progress_of(report, []) == Progress(1, 0, 0, "", 0, 40)


def test_queries_are_summed() -> None:
    """The watermark is the earliest one of the queries."""
    one = Progress(3, 10, 1, "2026-01-02", 5, 40)
    other = Progress(7, 20, 2, "2026-01-01", 6, 30)
    assert total([one, other, Progress()]) == Progress(7, 30, 3, "2026-01-01", 11, 40)
