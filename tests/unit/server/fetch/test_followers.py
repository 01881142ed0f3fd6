"""Fetches of followers: which partitions of a session the leader looks at."""

import asyncio
import gc
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
import pytest_asyncio

from ottla.base.errors import ErrorCode
from ottla.cluster.image import PartitionImage, TopicImage
from ottla.replication.partition import Partition
from ottla.server.fetch import followers
from ottla.server.fetch.slices import Changes
from ottla.server.handlers import fetch
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tests.handlers.logs import NODE, OTHER, LogsBroker, logs_broker
from tests.handlers.peers import accept_peer


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[LogsBroker]:
    async with logs_broker() as running:
        yield running


async def test_follower_outside_the_isr_is_considered_at_each_fetch(broker: LogsBroker) -> None:
    """Its session does not wait for a new record: a refused follower may be accepted later."""
    considered: list[tuple[int, int]] = []
    broker.isr_updates = cast(
        Any,
        SimpleNamespace(
            follower_fetched=lambda partition, replica: considered.append(
                (partition.partition, replica)
            )
        ),
    )
    topic_id = broker.rng.random_bytes(16)
    topic = TopicImage(
        "t",
        topic_id,
        (
            PartitionImage(0, NODE, 3, isr=(NODE,), replicas=(NODE, OTHER)),
            PartitionImage(1, NODE, 3, isr=(NODE, OTHER), replicas=(NODE, OTHER)),
        ),
    )
    broker.replicas.apply_leader_and_isr(1, topic.states())
    broker.image = broker.image.with_topics([topic])
    accept_peer(broker, OTHER)
    context = broker.context(fetch, 17)

    def request(epoch: int, session_id: int, *partitions: int) -> FetchRequest:
        return FetchRequest(
            replica_state=ReplicaState(replica_id=OTHER),
            max_wait_ms=0,
            min_bytes=1,
            session_id=session_id,
            session_epoch=epoch,
            topics=[
                FetchTopic(
                    topic_id=topic_id,
                    partitions=[
                        FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1000)
                        for number in partitions
                    ],
                )
            ],
        )

    first: Any = fetch.handle(context, request(0, 0, 0, 1))
    for epoch in (1, 2, 3):
        fetch.handle(context, request(epoch, first.session_id))
    assert considered[:2] == [(0, OTHER), (1, OTHER)]
    assert considered[-2:] == [(0, OTHER), (0, OTHER)]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Count the reads of each partition by fetches of followers."""
    counts: Counter[int] = Counter()
    original = Partition.check_leader

    def counted(partition: Partition, *arguments: Any, **options: Any) -> None:
        counts[partition.partition] += 1
        original(partition, *arguments, **options)

    monkeypatch.setattr(Partition, "check_leader", counted)
    return counts


class Following:
    """The fetches of one follower from a leader of `count` partitions, all in sync."""

    def __init__(self, broker: LogsBroker, count: int, *, in_sync: bool = True) -> None:
        self.broker, self.count = broker, count
        self.topic_id = broker.rng.random_bytes(16)
        isr = (NODE, OTHER) if in_sync else (NODE,)
        topic = TopicImage(
            "t",
            self.topic_id,
            tuple(
                PartitionImage(number, NODE, 3, isr=isr, replicas=(NODE, OTHER))
                for number in range(count)
            ),
        )
        broker.replicas.apply_leader_and_isr(1, topic.states())
        broker.image = broker.image.with_topics([topic])
        accept_peer(broker, OTHER)
        self.context = broker.context(fetch, 17)

    def request(self, epoch: int, session_id: int = 0, wait_ms: int = 60_000) -> Any:
        """Begin a fetch; it names all partitions unless it continues a session."""
        topic = FetchTopic(
            topic_id=self.topic_id,
            partitions=[
                FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1000)
                for number in range(self.count)
            ],
        )
        return fetch.handle(
            self.context,
            FetchRequest(
                replica_state=ReplicaState(replica_id=OTHER),
                max_wait_ms=wait_ms,
                min_bytes=1,
                session_id=session_id,
                session_epoch=epoch,
                topics=[topic] if epoch <= 0 else [],
            ),
        )

    def partition(self, number: int) -> Any:
        return self.broker.partition("t", number)


def with_records(response: Any) -> list[int]:
    return [
        item.partition_index
        for topic in response.responses
        for item in topic.partitions
        if item.records
    ]


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize("epoch", [-1, 0])
async def test_a_wake_up_reads_the_partitions_that_changed(
    broker: LogsBroker, reads: Counter[int], epoch: int
) -> None:
    """A change without records, such as a decided ISR, costs one read, whatever the fetch has."""
    following = Following(broker, 100)
    waiting = following.request(epoch)
    reads.clear()
    for _ in range(3):
        following.partition(7).changed()
        await turn()
    assert reads == {7: 3}
    assert not waiting.done()
    waiting.cancel()


async def test_changes_of_one_iteration_are_one_wake_up(
    broker: LogsBroker, reads: Counter[int]
) -> None:
    """Each of a hundred partitions that change together is read once."""
    following = Following(broker, 100)
    waiting = following.request(0)
    reads.clear()
    for number in range(100):
        following.partition(number).changed()
    await turn()
    assert reads == dict.fromkeys(range(100), 1)
    assert not waiting.done()
    waiting.cancel()


async def test_a_wake_up_of_an_incremental_fetch_reads_the_partitions_that_changed(
    broker: LogsBroker, reads: Counter[int]
) -> None:
    """The fetch also watches partitions that it read; they are not read again for another one."""
    following = Following(broker, 100, in_sync=False)
    session_id = following.request(0, wait_ms=0).session_id
    waiting = following.request(1, session_id)
    reads.clear()
    following.partition(7).changed()
    await turn()
    assert reads == {7: 1}
    waiting.cancel()


async def test_records_of_several_partitions_are_in_one_response(broker: LogsBroker) -> None:
    """Partitions that the session waits for, and partitions that the fetch has read itself."""
    following = Following(broker, 4)
    session_id = following.request(0, wait_ms=0).session_id
    waiting = following.request(1, session_id)
    following.partition(1).changed()
    await turn()
    # The fetch has read partition 1 itself; the session waits for the others.
    for number in (1, 3):
        broker.write("t", b"a", number=number)
    assert sorted(with_records(await waiting)) == [1, 3]


async def test_a_response_after_a_wake_up_misses_no_change(broker: LogsBroker) -> None:
    """All partitions that were appended in one iteration are in the response, in their order."""
    following = Following(broker, 5)
    waiting = following.request(0)
    for number in (3, 1, 4):
        broker.write("t", b"a", number=number)
    response = await waiting
    assert with_records(response) == [1, 3, 4]
    assert [item.partition_index for item in response.responses[0].partitions] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("count", [3, 30])
async def test_a_session_that_the_follower_does_not_know_ends_with_its_connection(
    broker: LogsBroker, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """A follower that interrupts its first fetch, for a new partition, begins another session."""
    monkeypatch.setattr(followers, "PARTITIONS_AT_ONCE", 10)
    following = Following(broker, count)
    for _ in range(2):
        waiting = following.request(0)
        await turn()
        assert len(broker.follower_sessions) == 1
        waiting.cancel()
        await turn()
        assert len(broker.follower_sessions) == 0
    session_id = (await following.request(0, wait_ms=1)).session_id
    following.request(1, session_id).cancel()
    await turn()
    assert [session.id for session in broker.follower_sessions] == [session_id]


async def test_a_refused_fetch_is_freed_at_once(broker: LogsBroker) -> None:
    """Followers name deleted partitions for a while; full collections are rare."""
    following = Following(broker, 3)
    keys = [("t", number) for number in range(3)]
    broker.replicas.stop_replicas(1, keys, delete=True)

    def fetches() -> int:
        return sum(isinstance(item, followers.FollowerFetch) for item in gc.get_objects())

    gc.collect()
    before = fetches()
    gc.disable()
    try:
        response = following.request(-1, wait_ms=0)
        errors = {item.error_code for item in response.responses[0].partitions}
        assert errors == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
        assert fetches() == before
    finally:
        gc.enable()


async def test_a_leader_that_resigns_ends_the_wait(broker: LogsBroker) -> None:
    """The follower learns at once that one of many partitions has another leader."""
    following = Following(broker, 3)
    waiting = following.request(0)
    following.partition(2).retire()
    errors = [item.error_code for item in (await waiting).responses[0].partitions]
    assert errors[:2] == [0, 0]
    assert errors[2] != 0


async def test_a_wake_up_by_very_many_partitions_responds_with_the_first(
    broker: LogsBroker, reads: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others stay due: the next request returns them, and reads them in slices."""
    monkeypatch.setattr(followers, "PARTITIONS_AT_ONCE", 10)
    following = Following(broker, 50)
    first = following.request(0, wait_ms=0)
    session_id = (await first).session_id
    waiting = following.request(1, session_id)
    reads.clear()
    for number in range(50):
        broker.write("t", b"a", number=number)
    assert with_records(await waiting) == list(range(10))
    assert reads == dict.fromkeys(range(10), 1)
    response = await following.request(2, session_id)
    assert sorted(with_records(response)) == list(range(50))


async def test_a_response_has_the_offsets_of_earlier_wake_ups(broker: LogsBroker) -> None:
    """A high watermark that advances is no reason to respond, but is in the next response."""
    following = Following(broker, 3)
    session_id = following.request(0, wait_ms=0).session_id
    waiting = following.request(1, session_id)
    following.partition(1).high_watermark = 7
    following.partition(1).changed()
    await turn()
    assert not waiting.done()
    broker.write("t", b"a", number=2)
    items = (await waiting).responses[0].partitions
    assert sorted((item.partition_index, item.high_watermark) for item in items) == [(1, 7), (2, 0)]


@pytest.fixture
def slow(broker: LogsBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slice be over after each partition."""
    monkeypatch.setattr(followers, "PARTITIONS_AT_ONCE", 1)
    times = itertools.count(100.0)
    monkeypatch.setattr(broker.clock, "monotonic", lambda: next(times))


async def until_read(following: Following, number: int) -> None:
    """Wait until a fetch has read a partition, and not yet the others."""
    async with asyncio.timeout(10):
        while not any(isinstance(one, Changes) for one in following.partition(number).waiters):
            await asyncio.sleep(0)


@pytest.mark.usefixtures("slow")
async def test_many_partitions_are_read_a_few_at_a_time(broker: LogsBroker) -> None:
    """Other requests are served in between; the response is the same."""
    following = Following(broker, 50)
    broker.write("t", b"a", number=30)
    response, turns = following.request(0), 0
    while not response.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 50
    assert [item.partition_index for item in response.result().responses[0].partitions] == list(
        range(50)
    )
    assert with_records(response.result()) == [30]


@pytest.mark.usefixtures("slow")
async def test_a_change_while_the_others_are_read_is_not_missed(broker: LogsBroker) -> None:
    """The response has the records; a change without records does not end the wait."""
    following = Following(broker, 3)
    waiting = following.request(0)
    await until_read(following, 0)
    following.partition(0).changed()
    await turn()
    await turn()
    assert not waiting.done()
    waiting.cancel()
    waiting = following.request(0)
    await until_read(following, 0)
    broker.write("t", b"a", number=0)
    assert with_records(await waiting) == [0]


@pytest.mark.usefixtures("slow")
async def test_a_fetch_of_a_lost_connection_notes_no_more_positions(broker: LogsBroker) -> None:
    """The follower may have sent newer positions over its next connection."""
    noted: list[int] = []
    broker.isr_updates = cast(
        Any,
        SimpleNamespace(follower_fetched=lambda partition, _: noted.append(partition.partition)),
    )
    following = Following(broker, 3)
    waiting = following.request(0)
    await until_read(following, 0)
    cast(Any, following.context.connection).is_closed = True
    await waiting
    assert noted == [0]
