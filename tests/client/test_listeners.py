"""Listeners of rebalances: what they may ask and do, and what happens if they raise."""

import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any

import pytest

from ottla.base.user_code import LoggedErrors
from ottla.client import OffsetAndMetadata, RebalanceListener, TopicPartition
from ottla.testing import Cluster
from tests.client.test_consumer import PATIENCE_S, consumer_of, fill, poll_until, read, values_of

pytestmark = pytest.mark.slow

ASSIGNORS = ["range", "cooperative-sticky", "sticky"]
API_TIMEOUT_MS = 3_000


class OnAssigned(RebalanceListener):
    """Calls a function when partitions are assigned."""

    def __init__(self, call: Callable[[list[TopicPartition]], Any]) -> None:
        self._call = call

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Call it."""
        self._call(partitions)


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_listener_looks_up_offsets(cluster: Cluster, topic: str, strategy: str) -> None:
    """The calls of a listener return before its partitions are read."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])
    settings = {"partition_assignment_strategy": strategy}
    with consumer_of(
        cluster, group_id=topic, default_api_timeout_ms=API_TIMEOUT_MS, **settings
    ) as consumer:
        consumer.subscribe(topic)
        poll_until(consumer, lambda: len(consumer.assignment) == 3)
        consumer.commit({(topic, 0): 2})
    answers: list[Any] = []

    def look_up(partitions: list[TopicPartition]) -> None:
        first = partitions[0]
        answers.append(consumer.committed([first]))
        answers.append(consumer.end_offsets([first]))
        answers.append(consumer.offsets_for_times({first: 1004}))
        answers.append(consumer.partitions_for(topic))
        consumer.seek_to_time(1006, partitions)

    with consumer_of(
        cluster, group_id=topic, default_api_timeout_ms=API_TIMEOUT_MS, **settings
    ) as consumer:
        consumer.subscribe(topic, listener=OnAssigned(look_up))
        assert values_of(read(consumer, 3)) == [b"6", b"7", b"8"]
    key = TopicPartition(topic, 0)
    assert answers == [{key: OffsetAndMetadata(2)}, {key: 3}, {key: 2}, [0, 1, 2]]


class Offsets:
    """An offset store with the same offset for every partition."""

    def __init__(self, offset: int, failures: int = 0) -> None:
        self._offset = offset
        self._failures = failures

    def load(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Return the offset, or fail as a database does."""
        if self._failures:
            self._failures -= 1
            raise sqlite3.OperationalError("database is locked")
        return dict.fromkeys(partitions, self._offset)


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_partitions_that_the_listener_pauses_start_at_their_offsets(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """After `resume` they begin where the offset store or the listener said."""
    fill(cluster, topic, [b"%d" % number for number in range(12)])
    settings = {"partition_assignment_strategy": strategy, "offset_store": Offsets(2)}

    def pause(partitions: list[TopicPartition]) -> None:
        consumer.seek(partitions[2], 3)
        consumer.pause(partitions)
        consumer.resume(partitions[:1])

    with consumer_of(cluster, group_id=topic, **settings) as consumer:
        consumer.subscribe(topic, listener=OnAssigned(pause))
        assert values_of(read(consumer, 2)) == [b"6", b"9"]
        assert consumer.poll(0.3) == []
        consumer.resume()
        assert values_of(read(consumer, 3)) == [b"10", b"11", b"7"]


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_failed_offset_store_loads_again(cluster: Cluster, topic: str, strategy: str) -> None:
    """Nothing is read before the store has responded; an error that lasts is raised."""
    fill(cluster, topic, [b"%d" % number for number in range(12)])
    settings = {"partition_assignment_strategy": strategy, "offset_store": Offsets(3, failures=2)}
    with consumer_of(cluster, topic, group_id=topic, **settings) as consumer:
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            read(consumer, 1)
        assert values_of(read(consumer, 3)) == [b"10", b"11", b"9"]
        assert consumer.poll(0.3) == []


@pytest.mark.parametrize("strategy", ASSIGNORS)
def test_partitions_without_a_stored_offset_start_as_the_group_says(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    """Also if the store has responded late; paused ones stay paused."""
    fill(cluster, topic, [b"%d" % number for number in range(6)])

    class OneOffset(Offsets):
        def load(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
            offsets = super().load(partitions)
            return {key: at for key, at in offsets.items() if key.partition == 0}

    settings = {"partition_assignment_strategy": strategy, "offset_store": OneOffset(1, failures=1)}
    with consumer_of(cluster, group_id=topic, **settings) as consumer:
        listener = OnAssigned(lambda partitions: consumer.pause(partitions[2:]))
        consumer.subscribe(topic, listener=listener)
        assert values_of(read(consumer, 3)) == [b"1", b"3", b"4"]
        assert consumer.poll(0.3) == []
        consumer.resume()
        assert values_of(read(consumer, 2)) == [b"2", b"5"]


@pytest.mark.parametrize("strategy", ASSIGNORS)
@pytest.mark.parametrize("change", ["assigned", "revoked"])
def test_listener_that_raises_leaves_a_correct_assignment(
    cluster: Cluster, topic: str, strategy: str, change: str
) -> None:
    """`poll` raises its error; the partitions are exactly the group's."""
    fill(cluster, topic, [b"%d" % number for number in range(6)])

    class Raising(RebalanceListener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            if change == "assigned":
                raise RuntimeError("no")

        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            if change == "revoked":
                raise RuntimeError("no")

    settings = {"group_id": topic, "partition_assignment_strategy": strategy}
    first, second = (consumer_of(cluster, heartbeat_interval_ms=100, **settings) for _ in range(2))
    first.subscribe(topic, listener=Raising())
    if change == "assigned":
        with pytest.raises(RuntimeError, match="no"):
            read(first, 1)
        assert len(first.assignment) == 3
    assert len(read(first, 6)) == 6
    second.subscribe(topic)
    errors: list[Exception] = []

    def is_shared() -> bool:
        with LoggedErrors(errors.append):
            first.poll(0.05)
        assert not first.assignment & second.assignment
        return len(first.assignment) + len(second.assignment) == 3 and bool(second.assignment)

    poll_until(second, is_shared)
    with LoggedErrors(errors.append):
        first.poll(0.05)
    assert {str(error) for error in errors} <= {"no"}
    assert errors or change == "assigned"
    with pytest.raises(RuntimeError) if change == "revoked" else nullcontext():
        first.close()
    second.close()


def test_error_of_a_listener_hides_no_error_of_the_block(cluster: Cluster, topic: str) -> None:
    """The error of the `with` block is raised, and the log has the listener's error."""

    class Raising(RebalanceListener):
        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            raise RuntimeError("no")

    with (
        pytest.raises(KeyError, match="body"),
        consumer_of(cluster, group_id=topic) as consumer,
    ):
        consumer.subscribe(topic, listener=Raising())
        poll_until(consumer, lambda: len(consumer.assignment) == 3)
        raise KeyError("body")


class Rebalancing:
    """librdkafka's consumer, in which a rebalance follows records that `consume` returns next."""

    def __init__(self, inner: Any, rebalance: Callable[[], None]) -> None:
        self._inner = inner
        self._rebalance = rebalance

    def __getattr__(self, name: str) -> Any:
        """Return librdkafka's method."""
        return getattr(self._inner, name)

    def consume(self, count: int, timeout: float) -> list[Any]:
        """Rebalance after the records."""
        messages = list(self._inner.consume(count, timeout))
        self._rebalance()
        return messages


def test_error_of_a_listener_costs_no_records(cluster: Cluster, topic: str) -> None:
    """Records that librdkafka returns in the same call are returned by the next `poll`."""
    fill(cluster, topic, [b"%d" % number for number in range(9)])

    class Raising(RebalanceListener):
        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            raise RuntimeError("no")

    with consumer_of(cluster, group_id=topic) as consumer:
        consumer.subscribe(topic, listener=Raising())
        poll_until(consumer, lambda: len(consumer.assignment) == 3)
        consumer.seek_to_beginning()
        inner, membership = consumer._consumer, consumer._membership
        consumer._consumer = Rebalancing(inner, lambda: membership._revoked(inner, []))
        errors: list[Exception] = []
        values: list[bytes] = []

        def has_everything() -> bool:
            with LoggedErrors(errors.append):
                values.extend(record.value for record in consumer.poll(0.05))
            return len(values) == 9 and bool(errors)

        deadline = time.monotonic() + PATIENCE_S
        while not has_everything():
            assert time.monotonic() < deadline
        consumer._consumer = inner
        with pytest.raises(RuntimeError):
            consumer.unsubscribe()
    assert sorted(values) == [b"%d" % number for number in range(9)]
