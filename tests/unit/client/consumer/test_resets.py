"""The offsets that librdkafka gets for partitions which it reports without a position."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from ottla.client import transport
from ottla.client.consumer.resets import StartsByAge
from ottla.client.errors import TimedOut
from ottla.client.records import TopicPartition

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))


class Report:
    """An error of librdkafka about one partition."""

    def __init__(self, key: TopicPartition, code: int = transport.NO_POSITION) -> None:
        self._key, self._code = key, code

    def error(self) -> "Report":
        """Return the error."""
        return self

    def code(self) -> int:
        """Return its code."""
        return self._code

    def topic(self) -> str:
        """Return the topic."""
        return self._key.topic

    def partition(self) -> int:
        """Return the partition."""
        return self._key.partition


class World:
    """A consumer with its assignment and positions; it records the offsets for librdkafka."""

    def __init__(self) -> None:
        self.assignment = {P0, P1, P2}
        self.starts: dict[TopicPartition, int] = {}
        self.read: dict[TopicPartition, int] = {}
        self.by_time: dict[TopicPartition, int | None] = {P0: 10, P1: 11, P2: 12}
        self.failures: list[Exception] = []
        self.calls: list[str] = []
        self.handed: list[dict[TopicPartition, int]] = []
        found: Any = self
        self.resets = StartsByAge(3_600_000, found, found, lambda: self.read)

    def offsets_for_times(
        self, times: Mapping[TopicPartition, float]
    ) -> dict[TopicPartition, int | None]:
        """Respond as a broker, or fail once."""
        self.calls.append("times")
        if self.failures:
            raise self.failures.pop()
        return {key: self.by_time[key] for key in times}

    def ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Return ends of 20."""
        self.calls.append("ends")
        return dict.fromkeys(partitions, (0, 20))

    def apply_starts(self) -> None:
        """Hand the starts to librdkafka."""
        self.handed.append(dict(self.starts))
        self.starts.clear()

    def report(self, *keys: TopicPartition) -> None:
        """Let librdkafka report partitions, and seek."""
        assert self.resets.without_reports([Report(key) for key in keys]) == []
        self.resets.seek()


@pytest.fixture
def world() -> World:
    """Three partitions without records that were read."""
    return World()


def test_other_messages_are_returned(world: World) -> None:
    """Also other errors; nothing is sought for them."""
    others = [Report(P0, transport.POLL_TOO_LATE), Report(P1, transport.NO_OFFSET)]
    assert world.resets.without_reports([*others, Report(P2)]) == others
    world.resets.seek()
    assert world.handed == [{P2: 12}]


def test_offsets_are_handed_over_until_something_was_read(world: World) -> None:
    """librdkafka forgets the start of a partition when another one is assigned with its own."""
    world.report(P0)
    world.report(P1)
    world.read[P0] = 15
    world.report(P2)
    assert world.handed == [{P0: 10}, {P0: 10, P1: 11}, {P1: 11, P2: 12}]


def test_a_partition_that_lost_its_position_starts_again(world: World) -> None:
    """Its records were deleted, for example."""
    world.read[P0] = 5
    world.report(P0)
    assert world.handed == [{P0: 10}]


def test_partitions_that_left_or_were_sought_are_forgotten(world: World) -> None:
    """An offset that the application chose comes first."""
    world.report(P0)
    world.resets.forget([P0])
    world.resets.without_reports([Report(P1), Report(P2)])
    world.assignment = {P0, P2}
    world.resets.seek()
    assert world.handed == [{P0: 10}, {P2: 12}]


def test_a_failed_lookup_is_repeated(world: World) -> None:
    """The partitions wait until it succeeds."""
    world.failures.append(TimedOut("injected"))
    with pytest.raises(TimedOut, match="injected"):
        world.report(P0, P1)
    world.resets.seek()
    world.resets.seek()
    assert world.handed == [{P0: 10, P1: 11}]


def test_no_record_of_the_age_means_the_end_before_the_second_lookup(world: World) -> None:
    """A record that arrives between the lookups of time and end is found by the second one."""
    world.by_time[P0] = None
    world.report(P0, P1)
    assert world.handed == [{P0: 20, P1: 11}]
    assert world.calls == ["times", "ends", "times"]
