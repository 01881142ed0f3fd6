"""Coordinators on virtual time, with in-memory partitions."""

from collections.abc import Iterator

import pytest

from ottla.base.rng import SeededRng
from ottla.base.tasks import Tasks
from ottla.testing.partitions import MemoryPartitions
from ottla.testing.sim.loop import SimLoop, VirtualClock


class World:
    """A loop, its clock, partitions and the owner of background tasks."""

    def __init__(self) -> None:
        self.loop = SimLoop(SeededRng(1))
        self.clock = VirtualClock(self.loop)
        self.rng = SeededRng(2)
        self.partitions = MemoryPartitions()
        self.failures: list[str] = []
        self.tasks = Tasks(lambda name, error: self.failures.append(f"{name}: {error}"))


@pytest.fixture
def world() -> Iterator[World]:
    """A fresh world; a background failure fails the test."""
    world = World()
    try:
        yield world
        world.loop.raise_failures()
        assert world.failures == []
    finally:
        world.loop.close()
