"""Tasks are opened when the brokers have responded, not with the result of another assignment."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

import pytest

from ottla.client.errors import TimedOut
from ottla.client.records import TopicPartition
from ottla.streams import Serdes, StreamsBuilder
from ottla.streams.layout.layout import Application
from ottla.streams.local.layout import TaskId, TaskLayout, task_layout
from ottla.streams.local.opening.lookups import LookupThread, look_up_now
from ottla.streams.local.opening.opener import TaskOpener
from ottla.streams.local.running import Offsets
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.task.task import TaskSettings

T = TypeVar("T")
_FIRST, _SECOND = TaskId(0, 0), TaskId(0, 1)
_KEYS = [TopicPartition("in", 0), TopicPartition("in", 1)]


class Fixture:
    """An opener of two tasks, whose brokers respond when `respond` is called."""

    def __init__(self) -> None:
        builder = StreamsBuilder()
        builder.stream("in").group_by_key().count(materialized="counts")
        settings = TaskSettings("app", DefaultSerdes(Serdes.string(), Serdes.string()))
        self._application = Application(builder.build(), settings)
        self.layout = task_layout(self._application, {"in": 2})
        self.now = 0.0
        self.unstable: set[TopicPartition] = set()
        self.is_down = False
        self.offset = 5
        self._waiting: list[Callable[[], None]] = []
        self.opener = TaskOpener(self, lambda: self.layout, self.start, lambda: self.now)

    def start(self, request: Callable[[], T]) -> Future[T]:
        """Queue a request."""
        future: Future[T] = Future()

        def respond() -> None:
            result = look_up_now(request)
            error = result.exception()
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result.result())

        self._waiting.append(respond)
        return future

    def respond(self) -> None:
        """Respond to all requests."""
        waiting, self._waiting = self._waiting, []
        for respond in waiting:
            respond()

    def committed(self, keys: Iterable[TopicPartition]) -> Offsets | None:
        """Return the committed positions."""
        wanted = set(keys)
        if self.is_down:
            raise TimedOut("no response")
        return None if wanted & self.unstable else {key: (self.offset, "") for key in wanted}

    def spans(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Return the offsets of changelogs."""
        return {key: (0, 9) for key in keys}

    def assign(self) -> None:
        """Assign both tasks; the layout is known."""
        self.opener.assign(_KEYS, [_FIRST, _SECOND])
        self.opener.new_tasks()
        self.respond()
        self.opener.new_tasks()

    def look(self) -> list[TaskId]:
        """Return the tasks to be opened now."""
        return [row.task for row in self.opener.found(self.layout)]


def test_tasks_are_found_when_the_brokers_have_responded() -> None:
    """The worker calls without a wait until then."""
    run = Fixture()
    run.assign()
    assert run.look() == []
    assert run.look() == []
    run.respond()
    (first, second) = run.opener.found(run.layout)
    assert (first.task, second.task) == (_FIRST, _SECOND)
    assert first.committed == {_KEYS[0]: (5, "")}
    assert first.spans == {TopicPartition("app-counts-changelog", 0): (0, 9)}


def test_the_result_of_another_assignment_is_discarded() -> None:
    """Another worker may have committed since: the position is read again."""
    run = Fixture()
    run.assign()
    run.look()
    run.respond()
    run.offset = 8
    run.assign()
    assert run.look() == []
    run.respond()
    assert run.opener.found(run.layout)[0].committed == {_KEYS[0]: (8, "")}


def test_a_task_with_an_open_transaction_does_not_delay_the_other() -> None:
    """Its position is read again after a pause."""
    run = Fixture()
    run.unstable = {_KEYS[0]}
    run.assign()
    run.look()
    run.respond()
    assert run.look() == [_SECOND]
    run.opener.tasks.discard(_SECOND)
    run.unstable = set()
    assert run.look() == []
    run.now = 0.1
    run.look()
    run.respond()
    assert run.look() == [_FIRST]


def test_a_lookup_is_repeated_if_the_brokers_do_not_respond() -> None:
    """The worker does not end, because its other tasks continue."""
    run = Fixture()
    run.is_down = True
    run.assign()
    run.look()
    run.respond()
    assert run.look() == []
    assert run.opener.is_busy
    run.is_down, run.now = False, 1.0
    run.look()
    run.respond()
    assert run.look() == [_FIRST, _SECOND]


def test_tasks_of_new_topics_follow_when_the_layout_is_known() -> None:
    """A join in between leaves them to the next assignment: the group does not know them yet."""
    run = Fixture()
    run.opener.assign(_KEYS, [])
    assert run.opener.new_tasks() == frozenset()
    run.respond()
    assert run.opener.new_tasks() == {_FIRST, _SECOND}
    assert not run.opener.is_busy
    run.opener.assign(_KEYS, [])
    run.opener.join()
    run.opener.new_tasks()
    run.respond()
    assert run.opener.new_tasks() == frozenset()


def test_a_lookup_thread_reports_errors_and_results() -> None:
    """The requests are made one after the other, in its thread."""
    thread = LookupThread("lookups")
    failed = thread.start(lambda: 1 // 0)
    done: Future[TaskLayout | int] = thread.start(lambda: 5)
    with pytest.raises(ZeroDivisionError):
        failed.result(10)
    assert done.result(10) == 5
    assert thread.stop(10)
