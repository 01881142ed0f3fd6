"""The queries of a pipeline that fail, with fakes of Spark's queries."""

from typing import Any

import pytest

from ottla.streams.pipelines.document import Text
from ottla.streams.pipelines.model import ConsoleSink
from ottla.streams.pipelines.problems import FilePosition
from ottla.streams.spark.pipelines.run import PipelineRun, SinkRun
from ottla.streams.spark.query.failures import QueryError

_BUSY = "Job aborted: Python worker failed to connect back."


class _Query:
    """A query that has ended, with an error or without one."""

    isActive = False
    recentProgress: tuple[Any, ...] = ()
    lastProgress = None

    def __init__(self, failure: str | None) -> None:
        self._failure = failure

    def exception(self) -> str | None:
        return self._failure

    def stop(self) -> None:
        """Do nothing: it has ended."""


def test_a_failure_names_the_records_of_its_batch() -> None:
    """An expression and most sinks do not say which record they reject."""
    run, _ = _run("[CAST_INVALID_INPUT] The value 'x' cannot be cast.")
    run.sinks["out"].batch_in_progress = lambda: "The batch has the records of a-0."
    with pytest.raises(QueryError, match=r"'x' cannot be cast.\nThe batch has the records of a-0."):
        run.await_termination(timeout_s=10)


def _run(*failures: str | None) -> tuple[PipelineRun, list[str | None]]:
    """Return a pipeline whose sink ends with one result after the other, and those left."""
    left = list(failures)
    position = FilePosition(1, 1)
    sink = ConsoleSink(name="out", position=position, origin=Text("a", position))
    start: Any = lambda: _Query(left.pop(0))  # noqa: E731
    run = PipelineRun()
    run.sinks["out"] = SinkRun(sink, start)
    return run, left


def test_a_query_whose_workers_start_too_late_is_started_again() -> None:
    """The pipeline continues as if the start had taken longer."""
    run, left = _run(_BUSY, _BUSY, None)
    assert run.await_termination(30)
    assert left == []


def test_a_machine_that_stays_busy_is_an_error() -> None:
    """After three retries the error says what to do."""
    run, left = _run(*[_BUSY] * 5)
    with pytest.raises(QueryError, match=r"Sink out: Spark's Python workers did not start .* busy"):
        run.await_termination(30)
    assert len(left) == 1


def test_another_failure_is_an_error_at_once() -> None:
    """It would fail in the same way again."""
    run, left = _run("no such column", None)
    with pytest.raises(QueryError, match="Sink out: no such column"):
        run.await_termination(30)
    assert len(left) == 1
