"""The Random port: the source of every random choice of the broker, so that a seed repeats a run."""

import random
from collections.abc import MutableSequence
from typing import Any, Protocol


class Rng(Protocol):
    """Source of random numbers; `SeededRng` is also the simulated twin."""

    def random_bytes(self, count: int) -> bytes:
        """Return `count` random bytes."""
        ...

    def below(self, limit: int) -> int:
        """Return a random integer in [0, limit)."""
        ...

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Reorder `items` in place."""
        ...


class SeededRng:
    """Random numbers that are reproducible from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def random_bytes(self, count: int) -> bytes:
        """Return `count` random bytes."""
        return self._random.randbytes(count)

    def below(self, limit: int) -> int:
        """Return a random integer in [0, limit)."""
        return self._random.randrange(limit)

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Reorder `items` in place."""
        self._random.shuffle(items)


class SystemRng(SeededRng):
    """Random numbers from the operating system."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()
