"""Which records a consumer returns, and where it seeks, while librdkafka may repeat a lookup."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from ottla.client import transport
from ottla.client.consumer.stray_lookups import StrayLookups
from ottla.client.errors import TimedOut
from ottla.client.records import OffsetAndMetadata, TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Message:
    """A record of librdkafka, or an error with its code."""

    def __init__(self, key: TopicPartition, offset: int, code: int | None = None) -> None:
        self.key, self._offset, self._code = key, offset, code

    def topic(self) -> str:
        """Return the topic."""
        return self.key.topic

    def partition(self) -> int:
        """Return the partition."""
        return self.key.partition

    def offset(self) -> int:
        """Return the offset."""
        return self._offset

    def error(self) -> Any:
        """Return the error, or None."""
        return None if self._code is None else SimpleNamespace(code=lambda: self._code)


class World:
    """A group with committed offsets, a clock, and the offsets of the next seek."""

    def __init__(self) -> None:
        self.starts: dict[TopicPartition, int] = {}
        self.chosen: dict[TopicPartition, int] = {}
        self.stored: dict[TopicPartition, int] = {}
        self.asked: list[list[TopicPartition]] = []
        self.failure: Exception | None = None
        self.now = 0.0
        found: Any = self
        self.strays = StrayLookups(found, self.committed, lambda: self.now)

    def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Respond as the coordinator."""
        self.asked.append(list(partitions))
        if self.failure is not None:
            raise self.failure
        return {
            key: OffsetAndMetadata(self.stored[key]) for key in partitions if key in self.stored
        }

    def take(self, key: TopicPartition, *offsets: int) -> list[int]:
        """Let records arrive; return the offsets of those that the consumer returns."""
        messages = [Message(key, offset) for offset in offsets]
        return [message.offset() for message in self.strays.checked(messages)]


def test_without_a_change_nothing_is_checked() -> None:
    """A seek after the first record needs no guard."""
    world = World()
    world.strays.expect(P0, 5)
    assert not world.strays.is_active


def test_records_that_were_read_are_not_returned_again() -> None:
    """Reading continues after the last returned record."""
    world = World()
    world.strays.guard([P0])
    assert world.take(P0, 0, 1, 2) == [0, 1, 2]
    assert world.take(P0, 3, 0, 1) == [3]
    assert world.starts == {P0: 4}
    assert not world.strays.is_active


def test_records_up_to_the_end_are_not_skipped() -> None:
    """The consumer seeks the first one that is missing, and reads on from there."""
    world = World()
    world.strays.guard([P0])
    world.strays.expect(P0, 7)
    assert world.take(P0, 7, 8, 90, 91) == [7, 8]
    assert world.starts == {P0: 9}


def test_other_partitions_go_on() -> None:
    """The consumer drops only records of the partition that has moved."""
    world = World()
    world.strays.guard([P0])
    world.strays.expect(P0, 7)
    messages = [Message(P0, 0), Message(P1, 3), Message(P0, 1), Message(P1, 4)]
    assert [(row.key, row.offset()) for row in world.strays.checked(messages)] == [(P1, 3), (P1, 4)]


def test_errors_are_passed_on() -> None:
    """An error has no offset to compare."""
    world = World()
    world.strays.guard([P0])
    world.strays.expect(P0, 7)
    error = Message(P0, -1001, transport.NO_POSITION)
    assert world.strays.checked([error]) == [error]


def test_an_end_is_a_position_that_is_compared() -> None:
    """The consumer reads the records that a lookup of the end has skipped without waiting for more."""
    world = World()
    world.strays.guard([P0])
    world.strays.expect(P0, 7)
    assert world.strays.checked([Message(P0, 90, transport.END_OF_PARTITION)]) == []
    assert world.starts == {P0: 7}


def test_a_gap_is_sought_once() -> None:
    """In a compacted log the records after the gap follow the seek, and are returned then."""
    world = World()
    world.strays.guard([P0])
    world.strays.expect(P0, 7)
    assert world.take(P0, 9, 10) == []
    assert world.starts == {P0: 7}
    assert world.take(P0, 9, 10) == [9, 10]


def test_a_new_owner_begins_at_the_committed_offset() -> None:
    """The consumer asks the group once, when the first record arrives."""
    world = World()
    world.strays.guard([P0, P1])
    world.stored = {P0: 40}
    assert world.take(P0, 0, 1) == []
    assert world.starts == {P0: 40}
    assert world.take(P1, 0, 1) == [0, 1]
    assert world.take(P1, 2) == [2]
    assert world.asked == [[P0], [P1]]


def test_offsets_of_the_application_come_before_committed_ones() -> None:
    """The consumer does not ask the group about a partition that began at a chosen offset."""
    world = World()
    world.strays.guard([P0])
    world.stored, world.chosen = {P0: 40}, {P0: 20}
    assert world.take(P0, 20, 21) == [20, 21]
    assert world.asked == []


def test_a_sought_end_may_be_any_offset() -> None:
    """The first record decides where the partition begins."""
    world = World()
    world.strays.guard([P0])
    world.strays.expect(P0, -1)
    assert world.take(P0, 50, 51) == [50, 51]


def test_no_record_is_lost_if_the_group_does_not_answer() -> None:
    """The first record decides where the partition begins."""
    world = World()
    world.strays.guard([P0])
    world.failure = TimedOut("no coordinator")
    assert world.take(P0, 5, 6) == [5, 6]


def test_the_guard_ends() -> None:
    """After two seconds the consumer accepts every offset."""
    world = World()
    world.strays.guard([P0])
    world.strays.expect(P0, 7)
    world.now = 2.0
    assert world.take(P0, 0) == [0]
    assert not world.strays.is_active
