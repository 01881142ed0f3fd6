"""One instance of an application: it runs the queries while it is active, and is a standby
otherwise.

A thread of its own opens the engine, follows the election, starts and monitors the queries, and
handles their errors. The engine is a port; Spark's is streams/spark/query/engine.py.
"""

import enum
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from ottla.base.errors import ConfigError, OttlaError
from ottla.streams.application.progress import Progress
from ottla.streams.application.states import State, StateMachine
from ottla.streams.model.errors import EngineBusyError, StreamsError, TopologyError
from ottla.streams.model.user_errors import UsersErrors

_log = logging.getLogger(__name__)

_LOOK_S = 0.2
_PROGRESS_S = 1.0
# The delays before a failed query is restarted; each is longer, until a query runs for a while.
_RESTS_S = (0.1, 0.5, 1.0, 2.0, 5.0)
_CALM_S = 30.0
# How often a start is retried because the engine was busy, before it is an error.
_BUSY_STARTS = 3


class UncaughtExceptionResponse(enum.Enum):
    """The reaction to an error that stopped the queries (Kafka's StreamThreadExceptionResponse)."""

    REPLACE_THREAD = "restart the queries from the checkpoint"
    SHUTDOWN_CLIENT = "stop this instance with the state ERROR"
    SHUTDOWN_APPLICATION = "stop all instances of the application"


UncaughtExceptionHandler = Callable[[Exception], UncaughtExceptionResponse]


class Query(Protocol):
    """The running queries of an application."""

    @property
    def is_active(self) -> bool:
        """True if all queries run."""

    @property
    def is_running(self) -> bool:
        """True if all queries process records: False while their tasks are assigned or restored."""

    @property
    def error(self) -> Exception | None:
        """The error that stopped a query; None if none occurred."""

    def progress(self) -> Progress:
        """Return the progress of the queries."""

    def is_idle(self) -> bool:
        """Return True if all records of the topics were read and have had their effects."""

    def stop(self) -> None:
        """Stop the queries; idempotent."""


class Engine(Protocol):
    """Runs queries. Its errors are OttlaErrors."""

    def open(self) -> None:
        """Prepare the engine; this may take seconds."""

    def start(self) -> Query:
        """Start the queries from their checkpoint."""

    def close(self) -> None:
        """Release the resources of `open`; idempotent."""


class Elector(Protocol):
    """Reports whether this instance is the active one."""

    @property
    def is_active(self) -> bool:
        """True if this instance is the active one."""

    @property
    def is_decided(self) -> bool:
        """True if an active instance has been elected."""

    @property
    def confirmed_at(self) -> float:
        """The time of the last confirmation of the election, in monotonic seconds."""

    @property
    def is_shutdown(self) -> bool:
        """True if all instances must shut down."""

    @property
    def error(self) -> Exception | None:
        """A fatal error of the election; None if none occurred."""

    def start(self) -> None:
        """Start to take part in the election."""

    def stop(self) -> None:
        """Leave the election."""

    def ask_shutdown(self) -> None:
        """Request that all instances shut down."""


class AlwaysActive:
    """The elector of an engine in which every instance runs tasks.

    Not done: `ask_shutdown` of other instances.
    """

    is_active = is_decided = True
    is_shutdown = False
    error: Exception | None = None
    instances: tuple[str, tuple[Any, ...]] = ("", ())

    @property
    def confirmed_at(self) -> float:
        """The present time."""
        return time.monotonic()

    def start(self) -> None:
        """Do nothing: the workers of the engine join a group."""

    def stop(self) -> None:
        """Do nothing."""

    def ask_shutdown(self) -> None:
        """Do nothing."""


def shut_down_client(_: Exception) -> UncaughtExceptionResponse:
    """Return SHUTDOWN_CLIENT, Kafka's default."""
    return UncaughtExceptionResponse.SHUTDOWN_CLIENT


class Instance:
    """The thread that runs an application."""

    def __init__(self, name: str, states: StateMachine, engine: Engine) -> None:
        self.handler: UncaughtExceptionHandler = shut_down_client
        self.error: Exception | None = None
        self._name = name
        self._states = states
        self._engine = engine
        self._elector: Elector | None = None
        self._query: Query | None = None
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._failures = self._busy_starts = 0
        self._last_failure: Exception | None = None
        self._failed_at: float | None = None
        self._started_at = 0.0
        self._progress_due = 0.0
        self._thread = threading.Thread(target=self._run, name=f"{name}-driver", daemon=True)

    def start(self, elector: Elector) -> None:
        """Start the thread. The elector must call `wake` after each change."""
        self._elector = elector
        self._states.move(State.REBALANCING)
        self._thread.start()

    @property
    def is_started(self) -> bool:
        """True if the thread has been started."""
        return self._thread.ident is not None

    def wake(self) -> None:
        """Check the election and the queries immediately."""
        self._woken.set()

    def stop(self, timeout_s: float | None = None) -> bool:
        """Stop the thread; return True if it has ended.

        If it is called from this thread, it returns immediately and the thread ends soon after.
        """
        self._stopping.set()
        self._woken.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def pending(self) -> str:
        """The reason why an application that has been started is not yet RUNNING, and the advice."""
        if self._elector is None or not self._elector.is_decided:
            return (
                "its instances have not elected the active one; check that the brokers respond, and wait longer if "
                "another instance ended without close()"
            )
        if self._last_failure is not None:
            return f"its queries are restarted after: {self._last_failure}"
        if self._query is None:
            return "its engine is still starting; wait longer, with a larger timeout_s"
        return (
            "its tasks are assigned or their state is restored; wait longer, with a larger timeout_s, while the "
            "lag in progress() falls"
        )

    def progress(self) -> Progress:
        """Return the progress of the queries."""
        query = self._query
        return Progress() if query is None else query.progress()

    def is_idle(self) -> bool:
        """Return True if the queries are idle; False if this instance runs none."""
        query = self._query
        return query is not None and query.is_idle()

    def _run(self) -> None:
        assert self._elector is not None
        is_clean = False
        try:
            # The first election takes seconds, and so does opening the engine.
            self._elector.start()
            self._engine.open()
            while not self._stopping.is_set():
                self._check()
                self._woken.wait(_LOOK_S)
                self._woken.clear()
            is_clean = True
        except OttlaError as error:
            self.error = error
        finally:
            self._end(is_clean=is_clean and self.error is None)

    def _end(self, *, is_clean: bool) -> None:
        assert self._elector is not None
        if is_clean:
            self._states.move(State.PENDING_SHUTDOWN)
        self._stop_query()
        self._elector.stop()
        self._engine.close()
        if self.error is not None:
            _log.error("The application %s has failed: %s", self._name, self.error)
        self._states.move(State.NOT_RUNNING if is_clean else State.ERROR)

    def _check(self) -> None:
        """Check the election and the queries, and act on changes."""
        assert self._elector is not None
        if self._elector.error is not None:
            raise self._elector.error
        if self._elector.is_shutdown:
            self._stopping.set()
        elif not self._elector.is_active:
            self._stand_by()
        elif self._query is None:
            self._start_query()
        elif self._query.is_active:
            self._states.move(State.RUNNING if self._query.is_running else State.REBALANCING)
            self._note_progress(self._query)
        elif self._is_confirmed():
            self._take_failure(self._query.error or StreamsError("the query was stopped"))

    def _note_progress(self, query: Query) -> None:
        """Read the progress once a second: the engine only keeps the counts of its last
        micro-batches.
        """
        now = time.monotonic()
        if now - self._started_at > _CALM_S:
            self._busy_starts = 0
        if now >= self._progress_due:
            self._progress_due = now + _PROGRESS_S
            query.progress()

    def _is_confirmed(self) -> bool:
        """Return True if this instance is confirmed to be active after its queries have failed.

        If another instance has become active, the sink was fenced, which is not an error of the
        application.
        """
        assert self._elector is not None
        if self._failed_at is None:
            self._failed_at = time.monotonic()
        return self._elector.confirmed_at > self._failed_at

    def _stand_by(self) -> None:
        assert self._elector is not None
        if self._query is not None:
            is_other = self._elector.is_decided
            why = "Another instance has become active" if is_other else "No instance is active"
            _log.warning("%s: the queries of this instance are stopped.", why)
            self._states.move(State.REBALANCING)
            self._stop_query()
        if self._elector.is_decided:
            self._states.move(State.RUNNING)
        else:
            self._states.move(State.REBALANCING)

    def _start_query(self) -> None:
        self._states.move(State.REBALANCING)
        self._started_at = time.monotonic()
        try:
            self._query = self._engine.start()
        except (ConfigError, TopologyError):
            # A retry would fail in the same way forever.
            raise
        except OttlaError as error:
            self._take_failure(error)
            return
        if self._query.is_running:
            self._states.move(State.RUNNING)

    def _stop_query(self) -> None:
        self._failed_at = None
        if self._query is not None:
            self._query.stop()
            self._query = None

    def _take_failure(self, error: Exception) -> None:
        """Call the handler and act on its response; retry a few times if the engine was busy."""
        if isinstance(error, EngineBusyError) and self._busy_starts < _BUSY_STARTS:
            self._busy_starts += 1
            self._restart(error)
            return
        with UsersErrors(
            f"The uncaught exception handler failed. The uncaught error: {error}\nThe handler's error:",
            StreamsError,
        ):
            response = self.handler(error)
        if response is UncaughtExceptionResponse.REPLACE_THREAD:
            self._restart(error)
            return
        self._stop_query()
        if response is UncaughtExceptionResponse.SHUTDOWN_APPLICATION:
            assert self._elector is not None
            self._elector.ask_shutdown()
        self.error = error
        self._stopping.set()

    def _restart(self, error: Exception) -> None:
        """Stop the queries; they start again after a rest, which grows while they fail."""
        self._stop_query()
        if time.monotonic() - self._started_at > _CALM_S:
            self._failures = 0
        _log.warning("Restarting the queries after: %s", error)
        self._last_failure = error
        self._states.move(State.REBALANCING)
        self._stopping.wait(_RESTS_S[min(self._failures, len(_RESTS_S) - 1)])
        self._failures += 1
