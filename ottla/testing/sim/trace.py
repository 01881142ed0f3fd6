"""A record of the steps of a simulation, as one hash and, on request, as lines to compare.

Two runs of one seed must produce the same hash, in any process. If they differ, the lines show the
first step that differs.
"""

import hashlib
from collections import deque
from typing import Protocol


class Timed(Protocol):
    """An object that returns the virtual time."""

    def time(self) -> float:
        """Return seconds."""
        ...


class Trace:
    """An append-only record; keeps the last `keep` lines, 0 for none and -1 for all of them."""

    def __init__(self, keep: int = 200) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self.lines: deque[str] = deque(maxlen=None if keep < 0 else keep)
        self.count = 0
        self.clock: Timed | None = None

    def record(self, kind: str, *details: object) -> None:
        """Add a step; `details` are numbers and strings that do not depend on addresses or hashes."""
        now = self.clock.time() if self.clock is not None else 0.0
        line = f"{now:.9f} {kind} {' '.join(map(str, details))}"
        self._hash.update(line.encode())
        self.lines.append(line)
        self.count += 1

    @property
    def digest(self) -> str:
        """The hash of all steps so far."""
        return self._hash.hexdigest()
