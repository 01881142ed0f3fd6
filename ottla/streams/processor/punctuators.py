"""Punctuators and their schedules, by stream time or wall-clock time."""

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ottla.streams.processor.api import PunctuationType


class Schedule:
    """A punctuator: its node, the time of the next call, and the function to call."""

    def __init__(
        self, node: str, punctuation: PunctuationType, due_ms: int, interval_ms: int, callback: Any
    ) -> None:
        self.node = node
        self.punctuation = punctuation
        self.due = due_ms
        self.interval_ms = interval_ms
        self.callback: Callable[[int], Any] = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        """Cancel the punctuator."""
        self.is_cancelled = True

    def advance(self, now: int) -> None:
        """Set the next time; missed intervals are skipped, as in Kafka."""
        missed = max(0, (now - self.due) // self.interval_ms)
        self.due += (missed + 1) * self.interval_ms


class Punctuators:
    """The punctuators of one clock; those that are due at the same time run in the order of
    creation.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Schedule]] = []
        self._numbers = itertools.count()

    def __iter__(self) -> Iterator[Schedule]:
        """Iterate over the punctuators that are not cancelled, in the order of their times."""
        return (
            punctuator for _, _, punctuator in sorted(self._heap) if not punctuator.is_cancelled
        )

    def __len__(self) -> int:
        """Return the number of punctuators, including cancelled ones."""
        return len(self._heap)

    def add(self, schedule: Schedule) -> None:
        """Add a punctuator."""
        heapq.heappush(self._heap, (schedule.due, next(self._numbers), schedule))

    def replace(self, schedules: Iterable[Schedule]) -> None:
        """Replace all punctuators."""
        self._heap.clear()
        for schedule in schedules:
            self.add(schedule)

    def run(self, now: int, call: Callable[[str, Callable[[int], Any], int], None]) -> None:
        """Run the punctuators that are due: pass node, function and time of each to `call`."""
        while self._heap and self._heap[0][0] <= now:
            _, _, schedule = heapq.heappop(self._heap)
            if schedule.is_cancelled:
                continue
            call(schedule.node, schedule.callback, now)
            if not schedule.is_cancelled:
                schedule.advance(now)
                self.add(schedule)
