"""The states of a running application, as Kafka Streams has them, and who hears of their changes."""

import enum
import threading
import time
from collections.abc import Callable

from ottla.streams.model.user_errors import LoggedErrors


class State(enum.Enum):
    """Where an application is in its life (KafkaStreams.State); NOT_RUNNING and ERROR are the ends."""

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    ERROR = "ERROR"

    @property
    def is_final(self) -> bool:
        """Whether nothing comes after it."""
        return self in (State.NOT_RUNNING, State.ERROR)


_AFTER = {
    State.CREATED: {State.REBALANCING, State.PENDING_SHUTDOWN},
    State.REBALANCING: {State.RUNNING, State.PENDING_SHUTDOWN, State.ERROR},
    State.RUNNING: {State.REBALANCING, State.PENDING_SHUTDOWN, State.ERROR},
    State.PENDING_SHUTDOWN: {State.NOT_RUNNING, State.ERROR},
    State.NOT_RUNNING: set(),
    State.ERROR: set(),
}

StateListener = Callable[[State, State], None]
"""Called with the new state and the old one, in the thread that made the change."""


class StateMachine:
    """A state that threads change and wait for."""

    def __init__(self) -> None:
        self._state = State.CREATED
        self._changed = threading.Condition()
        self.listener: StateListener | None = None

    @property
    def state(self) -> State:
        """The state now."""
        return self._state

    def move(self, state: State) -> bool:
        """Go to a state; return whether that was a change that is allowed."""
        with self._changed:
            before = self._state
            if state not in _AFTER[before]:
                return False
            self._state = state
            self._changed.notify_all()
        if self.listener is not None:
            with LoggedErrors("The state listener failed; the application goes on."):
                self.listener(state, before)
        return True

    def wait_for(self, *states: State, timeout_s: float | None = None) -> bool:
        """Wait for one of these states, or for an end; return whether it is one of these."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while self._state not in states and not self._state.is_final:
                rest = None if deadline is None else deadline - time.monotonic()
                if rest is not None and rest <= 0:
                    return False
                self._changed.wait(rest)
            return self._state in states
