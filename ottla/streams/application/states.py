"""The states of an application, as in Kafka Streams, and its state listener."""

import enum
import threading
import time
from collections.abc import Callable

from ottla.streams.model.errors import StreamsError
from ottla.streams.model.user_errors import logged_errors


class State(enum.Enum):
    """The state of an application (KafkaStreams.State); NOT_RUNNING and ERROR are final."""

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    ERROR = "ERROR"

    @property
    def is_final(self) -> bool:
        """True if no other state can follow."""
        return self in (State.NOT_RUNNING, State.ERROR)


_AFTER = {
    State.CREATED: {State.REBALANCING, State.PENDING_SHUTDOWN},
    State.REBALANCING: {State.RUNNING, State.PENDING_SHUTDOWN, State.ERROR},
    State.RUNNING: {State.REBALANCING, State.PENDING_SHUTDOWN, State.ERROR},
    State.PENDING_SHUTDOWN: {State.NOT_RUNNING, State.ERROR},
    State.NOT_RUNNING: set(),
    State.ERROR: set(),
}

_ADVICE = {
    State.CREATED: "call start(), or use the application in a with statement",
    State.PENDING_SHUTDOWN: "it is being closed; create another application",
    State.NOT_RUNNING: "it was closed; create another application",
}


def why_not_running(state: State, timeout_s: float, pending: str) -> str:
    """Return the error of a wait that has ended, with advice; `pending` is the advice for an
    application that has been started.
    """
    advice = _ADVICE.get(state, pending)
    return f"the application is {state.name}, not RUNNING, after {timeout_s:g} s: {advice}"


def check_started(state: State, subject: str) -> None:
    """Raise StreamsError, which begins with the subject, if the application has not been started."""
    if state is State.CREATED:
        raise StreamsError(f"{subject} before the application is started: {_ADVICE[State.CREATED]}")


StateListener = Callable[[State, State], None]
"""Called with the new and the old state, in the thread that changed the state."""


class StateMachine:
    """A state that threads can change and wait for."""

    def __init__(self) -> None:
        self._state = State.CREATED
        self._changed = threading.Condition()
        self.listener: StateListener | None = None

    @property
    def state(self) -> State:
        """The current state."""
        return self._state

    def move(self, state: State) -> bool:
        """Change the state; return True if the transition was allowed."""
        with self._changed:
            before = self._state
            if state not in _AFTER[before]:
                return False
            self._state = state
            self._changed.notify_all()
        if self.listener is not None:
            with logged_errors("The state listener failed; the application continues."):
                self.listener(state, before)
        return True

    def wait_for(self, *states: State, timeout_s: float | None = None) -> bool:
        """Wait for one of `states` or a final state; return True if the state is one of `states`."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while self._state not in states and not self._state.is_final:
                remaining_s = None if deadline is None else deadline - time.monotonic()
                if remaining_s is not None and remaining_s <= 0:
                    return False
                self._changed.wait(remaining_s)
            return self._state in states
