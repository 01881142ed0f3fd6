"""Punctuators: when each is due, on the stream's clock or on the wall's."""

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ottla.streams.processor.api import PunctuationType


class Schedule:
    """A punctuator: whose it is, when it is due next, and what is called."""

    def __init__(
        self, node: str, punctuation: PunctuationType, due: int, interval_ms: int, callback: Any
    ) -> None:
        self.node = node
        self.punctuation = punctuation
        self.due = due
        self.interval_ms = interval_ms
        self.callback: Callable[[int], Any] = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        """Do not call it any more."""
        self.is_cancelled = True

    def advance(self, now: int) -> None:
        """Set the next time; those that were missed are left out, as in Kafka."""
        missed = max(0, (now - self.due) // self.interval_ms)
        self.due += (missed + 1) * self.interval_ms


class Punctuators:
    """The punctuators of one clock; of those due at once the one that was added first comes first."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Schedule]] = []
        self._numbers = itertools.count()

    def __iter__(self) -> Iterator[Schedule]:
        """Walk those that are not cancelled, as they are due."""
        return (each for _, _, each in sorted(self._heap) if not each.is_cancelled)

    def __len__(self) -> int:
        """Return how many there are, cancelled ones among them."""
        return len(self._heap)

    def add(self, schedule: Schedule) -> None:
        """Add one."""
        heapq.heappush(self._heap, (schedule.due, next(self._numbers), schedule))

    def replace(self, schedules: Iterable[Schedule]) -> None:
        """Have these and no others."""
        self._heap.clear()
        for each in schedules:
            self.add(each)

    def run(self, now: int, call: Callable[[str, Callable[[int], Any], int], None]) -> None:
        """Call those that are due, each through `call`: with its node, its function and the time."""
        while self._heap and self._heap[0][0] <= now:
            _, _, schedule = heapq.heappop(self._heap)
            if schedule.is_cancelled:
                continue
            call(schedule.node, schedule.callback, now)
            if not schedule.is_cancelled:
                schedule.advance(now)
                self.add(schedule)
