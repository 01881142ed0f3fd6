"""An instance with a fake election and a fake engine."""

import math
import threading

import pytest

from ottla.streams.application.instance import Instance, UncaughtExceptionResponse, shut_down_client
from ottla.streams.application.progress import Progress
from ottla.streams.application.states import State, StateMachine, why_not_running
from ottla.streams.model.errors import EngineBusyError, StreamsError, TopologyError

_PATIENCE_S = 30.0


class _Query:
    """A query that runs until it is stopped or fails."""

    def __init__(self) -> None:
        self.is_active = self.is_running = True
        self.error: Exception | None = None
        self.is_stopped = False

    def progress(self) -> Progress:
        return Progress(records=7)

    def is_idle(self) -> bool:
        return self.is_active

    def stop(self) -> None:
        self.is_active, self.is_stopped = False, True


class _Engine:
    """An engine that counts its queries."""

    def __init__(self) -> None:
        self.queries: list[_Query] = []
        self.starts = 0
        self.started = threading.Semaphore(0)
        self.is_open = False
        self.failure: StreamsError | None = None

    def open(self) -> None:
        self.is_open = True

    def start(self) -> _Query:
        self.starts += 1
        if self.failure is not None:
            raise self.failure
        self.queries.append(_Query())
        self.started.release()
        return self.queries[-1]

    def close(self) -> None:
        self.is_open = False


class _Elector:
    """An election whose result the test sets."""

    def __init__(self, *, is_active: bool = True) -> None:
        self.is_active = is_active
        self.is_decided = True
        self.is_shutdown = False
        self.is_in = False
        self.confirmed_at = math.inf
        self.error: Exception | None = None

    def start(self) -> None:
        self.is_in = True

    def stop(self) -> None:
        self.is_in = False

    def ask_shutdown(self) -> None:
        self.is_shutdown = True


class _World:
    """An instance with its fakes."""

    def __init__(self, elector: _Elector | None = None) -> None:
        self.states = StateMachine()
        self.engine = _Engine()
        self.elector = elector or _Elector()
        self.instance = Instance("app", self.states, self.engine)

    def start(self) -> None:
        self.instance.start(self.elector)

    def await_query(self) -> _Query:
        assert self.engine.started.acquire(timeout=_PATIENCE_S)
        assert self.states.wait_for(State.RUNNING, timeout_s=_PATIENCE_S)
        return self.engine.queries[-1]

    def fail(self, query: _Query) -> None:
        query.error = StreamsError("poison")
        query.is_active = False
        self.instance.wake()


def test_the_active_instance_runs_the_queries_until_it_is_stopped() -> None:
    """Stopping the instance stops the query and closes the engine and the election."""
    world = _World()
    world.start()
    query = world.await_query()
    assert world.engine.is_open
    assert world.elector.is_in
    assert world.instance.progress().records == 7
    assert world.instance.stop(_PATIENCE_S)
    assert query.is_stopped
    assert world.states.state is State.NOT_RUNNING
    assert not world.engine.is_open
    assert not world.elector.is_in


def test_an_instance_is_idle_only_while_it_runs_idle_queries() -> None:
    """An instance without queries does not know if the application is idle."""
    world = _World()
    assert not world.instance.is_idle()
    world.start()
    query = world.await_query()
    assert world.instance.is_idle()
    query.is_active = False
    assert not world.instance.is_idle()
    world.instance.stop()


def test_a_standby_is_running_and_takes_over() -> None:
    """A standby runs no query until it is elected, and none after it is deposed."""
    world = _World(_Elector(is_active=False))
    world.start()
    assert world.states.wait_for(State.RUNNING, timeout_s=_PATIENCE_S)
    assert not world.engine.queries
    world.elector.is_active = True
    world.instance.wake()
    query = world.await_query()
    deposed = threading.Event()
    world.states.listener = lambda new, old: deposed.set()
    world.elector.is_active = False
    world.instance.wake()
    assert deposed.wait(_PATIENCE_S)
    assert world.states.wait_for(State.RUNNING, timeout_s=_PATIENCE_S)
    assert query.is_stopped
    world.instance.stop()


def test_an_error_ends_the_instance_by_default(caplog: pytest.LogCaptureFixture) -> None:
    """The default response is SHUTDOWN_CLIENT, as in Kafka; the error is logged at once."""
    world = _World()
    world.start()
    world.fail(world.await_query())
    assert world.states.wait_for(State.ERROR, timeout_s=_PATIENCE_S)
    assert str(world.instance.error) == "poison"
    assert not world.elector.is_shutdown
    assert caplog.messages == ["The application app has failed: poison"]
    assert caplog.records[0].levelname == "ERROR"


def test_a_busy_engine_is_started_again_before_it_is_an_error() -> None:
    """The uncaught exception handler is called after four starts that failed."""
    world = _World()
    handled: list[Exception] = []
    world.instance.handler = lambda error: handled.append(error) or shut_down_client(error)
    world.engine.failure = EngineBusyError("no worker")
    world.start()
    assert world.states.wait_for(State.ERROR, timeout_s=_PATIENCE_S)
    assert world.engine.starts == 4
    assert list(map(str, handled)) == ["no worker"]


def test_a_busy_engine_that_starts_later_runs() -> None:
    """The failure of a running query is retried, too."""
    world = _World()
    world.start()
    query = world.await_query()
    query.error = EngineBusyError("no worker")
    query.is_active = False
    world.instance.wake()
    assert world.engine.started.acquire(timeout=_PATIENCE_S)
    assert world.states.wait_for(State.RUNNING, timeout_s=_PATIENCE_S)
    assert world.instance.error is None
    world.instance.stop()


def test_a_handler_can_restart_the_queries() -> None:
    """REPLACE_THREAD restarts the queries, and SHUTDOWN_APPLICATION ends all instances."""
    world = _World()
    responses = [
        UncaughtExceptionResponse.REPLACE_THREAD,
        UncaughtExceptionResponse.SHUTDOWN_APPLICATION,
    ]
    world.instance.handler = lambda error: responses.pop(0)
    world.start()
    world.fail(world.await_query())
    assert world.engine.started.acquire(timeout=_PATIENCE_S)
    assert world.states.wait_for(State.RUNNING, timeout_s=_PATIENCE_S)
    world.fail(world.engine.queries[-1])
    assert world.states.wait_for(State.ERROR, timeout_s=_PATIENCE_S)
    assert world.elector.is_shutdown
    assert not responses


def test_an_application_that_does_not_run_yet_gives_the_reason() -> None:
    """Without an election, without queries, while tasks are restored, and after a failure."""
    elector = _Elector()
    elector.is_decided = elector.is_active = False
    world = _World(elector)
    assert "have not elected the active one; check that" in world.instance.pending
    world.start()
    assert "have not elected the active one; check that" in world.instance.pending
    elector.is_decided = True
    assert "its engine is still starting; wait longer" in world.instance.pending
    elector.is_active = True
    world.instance.wake()
    query = world.await_query()
    assert "their state is restored; wait longer" in world.instance.pending
    world.instance.handler = lambda _: UncaughtExceptionResponse.REPLACE_THREAD
    world.fail(query)
    assert world.engine.started.acquire(timeout=_PATIENCE_S)
    assert world.instance.pending == "its queries are restarted after: poison"
    sentence = why_not_running(State.REBALANCING, 60, world.instance.pending)
    assert sentence == (
        "the application is REBALANCING, not RUNNING, after 60 s: its queries are restarted after: poison"
    )
    world.instance.stop()


def test_an_instance_ends_when_the_application_does() -> None:
    """The instance stops when another one requests a shutdown of the application."""
    world = _World()
    world.start()
    query = world.await_query()
    world.elector.is_shutdown = True
    world.instance.wake()
    assert world.states.wait_for(State.NOT_RUNNING, timeout_s=_PATIENCE_S)
    assert query.is_stopped


def test_a_failed_start_is_an_error() -> None:
    """The instance has the error of the start, such as a checkpoint of another topology."""
    world = _World()
    world.engine.failure = StreamsError("refused")
    world.start()
    assert world.states.wait_for(State.ERROR, timeout_s=_PATIENCE_S)
    assert str(world.instance.error) == "refused"


def test_a_deposed_instance_becomes_standby_even_if_its_queries_failed_first() -> None:
    """The sink of a suspended machine is fenced before the instance learns that it was deposed."""
    world = _World()
    handled: list[Exception] = []
    world.instance.handler = lambda error: handled.append(error) or shut_down_client(error)
    world.elector.confirmed_at = -math.inf
    world.start()
    query = world.await_query()
    stopped = threading.Event()
    world.states.listener = lambda new, old: stopped.set()
    world.fail(query)
    world.elector.is_active = False
    world.instance.wake()
    assert stopped.wait(_PATIENCE_S)
    assert world.states.wait_for(State.RUNNING, timeout_s=_PATIENCE_S)
    assert not handled
    world.instance.stop()


def test_a_failed_start_is_retried_if_the_handler_says_so() -> None:
    """A temporary error, such as a broker that is not up yet, can be retried."""
    world = _World()
    world.engine.failure = StreamsError("nobody listens")

    def handle(error: Exception) -> UncaughtExceptionResponse:
        world.engine.failure = None
        return UncaughtExceptionResponse.REPLACE_THREAD

    world.instance.handler = handle
    world.start()
    world.await_query()
    assert world.states.state is State.RUNNING
    assert world.instance.error is None
    world.instance.stop()


def test_a_topology_error_is_final_despite_the_handler() -> None:
    """A retry would find the same checkpoint of another topology."""
    world = _World()
    world.engine.failure = TopologyError("another topology")
    world.instance.handler = lambda error: UncaughtExceptionResponse.REPLACE_THREAD
    world.start()
    assert world.states.wait_for(State.ERROR, timeout_s=_PATIENCE_S)
    assert str(world.instance.error) == "another topology"


def test_states_change_only_as_in_kafka() -> None:
    """NOT_RUNNING is final."""
    states = StateMachine()
    assert not states.move(State.RUNNING)
    assert states.move(State.PENDING_SHUTDOWN)
    assert states.move(State.NOT_RUNNING)
    assert not states.move(State.REBALANCING)
    assert not states.wait_for(State.RUNNING)


@pytest.mark.parametrize("response", list(UncaughtExceptionResponse))
def test_responses_have_kafkas_names(response: UncaughtExceptionResponse) -> None:
    """The names come from StreamThreadExceptionResponse."""
    assert response.name in ("REPLACE_THREAD", "SHUTDOWN_CLIENT", "SHUTDOWN_APPLICATION")


def test_a_handler_that_raises_ends_the_instance_with_both_errors() -> None:
    """The thread cleans up, and stop returns instead of waiting."""
    world = _World()
    world.instance.handler = lambda error: UncaughtExceptionResponse[str(error)]
    world.start()
    world.fail(world.await_query())
    assert world.states.wait_for(State.ERROR, timeout_s=_PATIENCE_S)
    assert world.instance.stop(_PATIENCE_S)
    lines = str(world.instance.error).splitlines()
    assert lines[:3] == [
        "The uncaught exception handler failed. The uncaught error: poison",
        "The handler's error:",
        "KeyError: 'poison'",
    ]
    assert "test_instance.py" in lines[3]
    assert not world.engine.is_open
    assert not world.elector.is_in
