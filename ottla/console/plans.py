"""Plans that a user has seen and may execute or undo: dry runs, kept in memory for an hour."""

import secrets
from collections import OrderedDict
from threading import Lock
from typing import Any, TypeVar

from ottla.base.clock import Clock
from ottla.base.errors import ConfigError

P = TypeVar("P")

_MAX_PLANS = 500
_LIFE_S = 3600.0


class Plans:
    """Plans by a random number; only the session that made one can read it. For any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._plans: OrderedDict[tuple[str, str], tuple[float, Any]] = OrderedDict()

    def keep(self, session: str, plan: Any) -> str:
        """Keep a plan and return its number."""
        number = secrets.token_urlsafe(9)
        with self._lock:
            self._plans[session, number] = (self._clock.monotonic(), plan)
            while len(self._plans) > _MAX_PLANS:
                self._plans.popitem(last=False)
        return number

    def find(self, session: str, number: str, kind: type[P]) -> P | None:
        """Return a plan of a class, or None if it is too old or of another session."""
        with self._lock:
            at, plan = self._plans.get((session, number), (0.0, None))
        is_young = self._clock.monotonic() - at <= _LIFE_S
        return plan if isinstance(plan, kind) and is_young else None

    def get(self, session: str, number: str, kind: type[P]) -> P:
        """Return a plan as `find` does; ConfigError if it is missing."""
        plan = self.find(session, number, kind)
        if plan is None:
            raise ConfigError("this plan is no longer available: make it again")
        return plan
