"""One instance of an application: runs its queries while it is the active one, stands by while it is not.

A thread of its own opens the engine, follows the election, starts the queries, looks after them and says what
becomes of their errors. The engine is a port: Spark's is streams/spark/query/engine.py.
"""

import enum
import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from ottla.base.errors import ConfigError, OttlaError
from ottla.streams.application.progress import Progress
from ottla.streams.application.states import State, StateMachine
from ottla.streams.model.errors import StreamsError, TopologyError
from ottla.streams.model.user_errors import UsersErrors

_log = logging.getLogger(__name__)

_LOOK_S = 0.2
_PROGRESS_S = 1.0
# How long it rests before an errant query is started again; longer each time, until one runs for a while.
_RESTS_S = (0.1, 0.5, 1.0, 2.0, 5.0)
_CALM_S = 30.0


class UncaughtExceptionResponse(enum.Enum):
    """What follows of an error that stopped the queries (Kafka's StreamThreadExceptionResponse)."""

    REPLACE_THREAD = "start the queries again, from the checkpoint"
    SHUTDOWN_CLIENT = "end this instance, in the state ERROR"
    SHUTDOWN_APPLICATION = "end all instances of the application"


UncaughtExceptionHandler = Callable[[Exception], UncaughtExceptionResponse]


class Query(Protocol):
    """Queries that run."""

    @property
    def is_active(self) -> bool:
        """Whether all of them run."""

    @property
    def error(self) -> Exception | None:
        """What stopped one, if something did."""

    def progress(self) -> Progress:
        """Return how they get on."""

    def stop(self) -> None:
        """Stop them; idempotent."""


class Engine(Protocol):
    """What runs queries. Its errors are OttlaError."""

    def open(self) -> None:
        """Get ready, which may take seconds."""

    def start(self) -> Query:
        """Start the queries, from where their checkpoint says."""

    def close(self) -> None:
        """Let go of what `open` made; idempotent."""


class Elector(Protocol):
    """Says whether this instance is the active one."""

    @property
    def is_active(self) -> bool:
        """Whether it is."""

    @property
    def is_decided(self) -> bool:
        """Whether anybody is."""

    @property
    def heard_at(self) -> float:
        """When that was confirmed last; monotonic seconds."""

    @property
    def is_shutdown(self) -> bool:
        """Whether all instances are to end."""

    @property
    def error(self) -> Exception | None:
        """What keeps it from saying so, for good."""

    def start(self) -> None:
        """Take part."""

    def stop(self) -> None:
        """Leave."""

    def ask_shutdown(self) -> None:
        """Have all instances end."""


def shut_down_client(_: Exception) -> UncaughtExceptionResponse:
    """End the instance: Kafka's default."""
    return UncaughtExceptionResponse.SHUTDOWN_CLIENT


class Instance:
    """The thread that looks after an application."""

    def __init__(self, name: str, states: StateMachine, engine: Engine) -> None:
        self.handler: UncaughtExceptionHandler = shut_down_client
        self.error: Exception | None = None
        self._states = states
        self._engine = engine
        self._elector: Elector | None = None
        self._query: Query | None = None
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._failures = 0
        self._failed_at: float | None = None
        self._started_at = 0.0
        self._progress_due = 0.0
        self._thread = threading.Thread(target=self._run, name=f"{name}-driver", daemon=True)

    def start(self, elector: Elector) -> None:
        """Begin; `wake` is to be called when the elector has news."""
        self._elector = elector
        self._states.move(State.REBALANCING)
        self._thread.start()

    @property
    def is_started(self) -> bool:
        """Whether its thread was ever started."""
        return self._thread.ident is not None

    def wake(self) -> None:
        """Look at once at what there is to do."""
        self._woken.set()

    def stop(self, timeout_s: float | None = None) -> bool:
        """End; return whether it has ended. From its own thread, it ends soon after."""
        self._stopping.set()
        self._woken.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def progress(self) -> Progress:
        """Return how the queries get on."""
        query = self._query
        return Progress() if query is None else query.progress()

    def _run(self) -> None:
        assert self._elector is not None
        is_clean = False
        try:
            # A first election takes seconds, and so does an engine.
            self._elector.start()
            self._engine.open()
            while not self._stopping.is_set():
                self._look()
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
        self._states.move(State.NOT_RUNNING if is_clean else State.ERROR)

    def _look(self) -> None:
        """Do what is due."""
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
            self._note_progress(self._query)
        elif self._is_confirmed():
            self._take_failure(self._query.error or StreamsError("the query was stopped"))

    def _note_progress(self, query: Query) -> None:
        """Read the progress once a second: the engine keeps the counts of its last micro-batches only."""
        now = time.monotonic()
        if now >= self._progress_due:
            self._progress_due = now + _PROGRESS_S
            query.progress()

    def _is_confirmed(self) -> bool:
        """Tell whether this is the active instance still, after its queries have failed.

        Where another one has taken over meanwhile, the sink was fenced: that is no error of the application's.
        """
        assert self._elector is not None
        if self._failed_at is None:
            self._failed_at = time.monotonic()
        return self._elector.heard_at > self._failed_at

    def _stand_by(self) -> None:
        assert self._elector is not None
        if self._query is not None:
            is_other = self._elector.is_decided
            why = (
                "Another instance is the active one now"
                if is_other
                else "No instance is the active one now"
            )
            _log.warning("%s: the queries here are stopped.", why)
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
            # Whoever has it tried again would do so for ever.
            raise
        except OttlaError as error:
            self._take_failure(error)
            return
        self._states.move(State.RUNNING)

    def _stop_query(self) -> None:
        self._failed_at = None
        if self._query is not None:
            self._query.stop()
            self._query = None

    def _take_failure(self, error: Exception) -> None:
        """Let the handler say what follows."""
        with UsersErrors(
            f"The uncaught exception handler failed, at: {error}\nWith:", StreamsError
        ):
            response = self.handler(error)
        self._stop_query()
        if response is UncaughtExceptionResponse.REPLACE_THREAD:
            if time.monotonic() - self._started_at > _CALM_S:
                self._failures = 0
            _log.warning("The queries are started again, after: %s", error)
            self._states.move(State.REBALANCING)
            self._stopping.wait(_RESTS_S[min(self._failures, len(_RESTS_S) - 1)])
            self._failures += 1
            return
        if response is UncaughtExceptionResponse.SHUTDOWN_APPLICATION:
            assert self._elector is not None
            self._elector.ask_shutdown()
        self.error = error
        self._stopping.set()
