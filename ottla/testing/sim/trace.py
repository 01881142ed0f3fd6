"""A record of the steps of a simulation, as one hash and, on request, as lines to compare.

Two runs of one seed must produce the same hash, in any process. If they differ, the lines show the
first step that differs.
"""

import hashlib
from collections import deque
from typing import Protocol

# Hashing many lines at once costs less than many calls.
_LINES_PER_HASH = 1000


class Timed(Protocol):
    """An object that returns the virtual time."""

    def time(self) -> float:
        """Return seconds."""
        ...


class Trace:
    """An append-only record; keeps the last `keep` lines, 0 for none and -1 for all of them."""

    def __init__(self, keep: int = 200) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._unhashed: list[str] = []
        self._now = -1.0
        self._moment = ""
        self.lines: deque[str] = deque(maxlen=None if keep < 0 else keep)
        self.count = 0
        self.clock: Timed | None = None

    def record(self, kind: str, *details: object) -> None:
        """Add a step; `details` are numbers and strings that do not depend on addresses or hashes."""
        now = self.clock.time() if self.clock is not None else 0.0
        self._add(now, f"{kind} {' '.join(map(str, details))}")

    def record_step(self, now: float, name: str) -> None:
        """Add a step of the loop at the time `now`: most lines are of this kind."""
        self._add(now, "step " + name)

    def _add(self, now: float, text: str) -> None:
        if now != self._now:
            self._now, self._moment = now, f"{now:.9f} "
        line = self._moment + text
        unhashed = self._unhashed
        unhashed.append(line)
        if len(unhashed) >= _LINES_PER_HASH:
            self._hash_lines()
        self.lines.append(line)
        self.count += 1

    def _hash_lines(self) -> None:
        self._hash.update("".join(self._unhashed).encode())
        self._unhashed.clear()

    @property
    def digest(self) -> str:
        """The hash of all steps so far."""
        self._hash_lines()
        return self._hash.hexdigest()
