"""The status of a pipeline: rates of counts, and states of runs that ended without a last word."""

import pytest

from ottla.streams.application.pipeline_status import (
    LOST,
    RUNNING,
    STOPPED,
    PipelineStatus,
    RecordRate,
    SinkStatus,
)


def test_the_rate_is_of_the_last_minute() -> None:
    """A count that no longer increases has the rate 0 a minute later."""
    rate = RecordRate()
    assert rate.add(0.0, 0) == 0.0
    assert rate.add(10.0, 1000) == 100.0
    assert rate.add(30.0, 3000) == 100.0
    assert rate.add(90.0, 3000) == 0.0
    assert rate.add(91.0, 3061) == 1.0


@pytest.mark.parametrize(
    ("state", "silent_ms", "is_alive", "expected"),
    [
        (RUNNING, 5_000, True, RUNNING),
        (RUNNING, 5_000, False, LOST),
        (RUNNING, 90_000, True, LOST),
        (STOPPED, 90_000, False, STOPPED),
    ],
)
def test_a_run_without_a_last_word_is_lost(
    state: str, silent_ms: int, is_alive: bool, expected: str
) -> None:
    """Its process has ended, or does not write."""
    status = PipelineStatus(
        pipeline="p", host="h", process=1, checkpoint="c", started_ms=0, at_ms=1000, state=state
    )
    assert status.state_now(1000 + silent_ms, is_alive=is_alive) == expected


def test_a_status_is_the_same_after_its_json() -> None:
    """Other documents are errors."""
    status = PipelineStatus(
        pipeline="p",
        host="h",
        process=1,
        checkpoint="c",
        started_ms=0,
        at_ms=1,
        sinks=(SinkStatus(sink="s"),),
    )
    assert PipelineStatus.from_json(status.to_json()) == status
    for document in ({}, {**status.to_json(), "more": 1}, {**status.to_json(), "at_ms": "1"}):
        with pytest.raises((KeyError, TypeError, ValueError)):
            PipelineStatus.from_json(document)
