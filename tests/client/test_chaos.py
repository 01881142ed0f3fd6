"""Every client while brokers die and groups rebalance: no record is lost or duplicated beyond its
guarantee.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ottla.client import AsyncConsumer, Consumer, Producer
from ottla.testing import Cluster
from tests.client.chaos import IS_CAMPAIGN, OPTIONS, PARTITIONS, QUICK, Storm
from tests.client.loads import LOADS, MEMBER, Idempotent, Load

pytestmark = [pytest.mark.timeout(1200 if IS_CAMPAIGN else 120), pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three brokers; the storm leaves them healthy."""
    with Cluster(brokers=3, options=OPTIONS) as running:
        yield running


@pytest.fixture(scope="module")
def loads(cluster: Cluster) -> dict[type[Load], Load]:
    """Every kind of client after one storm, which all have worked through at the same time."""
    loads = {kind: kind(cluster) for kind in LOADS}
    topics = [load.topic for load in loads.values()]
    storm = Storm(cluster, topics, lambda: min(load.done for load in loads.values()))

    def work(load: Load) -> None:
        try:
            load.run(lambda: storm.is_over)
        except BaseException:
            storm.abandon()
            raise

    with storm, ThreadPoolExecutor(len(loads)) as pool:
        futures = {kind: pool.submit(work, load) for kind, load in loads.items()}
    for kind, future in futures.items():
        assert future.exception() is None, (kind, future.exception(), storm.faults)
    return loads


@pytest.mark.parametrize("kind", LOADS, ids=lambda kind: kind.__name__)
def test_guarantee_holds_although_brokers_die(
    loads: dict[type[Load], Load], kind: type[Load]
) -> None:
    """Each client keeps its guarantee while the leaders of its partitions are killed and restarted."""
    print(kind.guarantee)
    loads[kind].check()


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky", "sticky", "consumer"])
def test_rebalances_under_load(cluster: Cluster, protocol: str) -> None:
    """Members that join and leave while records arrive process every record exactly once."""
    group = f"rebalances-{protocol}"
    settings: dict[str, Any] = {**QUICK, **MEMBER, "partition_assignment_strategy": protocol}
    if protocol == "consumer":
        settings = {**QUICK, "auto_offset_reset": "earliest", "group_protocol": "consumer"}
    feed, seen = _Feed(cluster, group), Counter[int]()

    def join() -> Consumer:
        return Consumer(group, bootstrap_servers=cluster.bootstrap, group_id=group, **settings)

    members = [join()]
    with Producer(feed.producing, linger_ms=0) as producer:

        def work() -> None:
            feed.feed(producer)
            for one in members:
                seen.update(int(record.value) for record in one.poll(0.01))

        def balance() -> None:
            while sorted(len(one.assignment) for one in members) != _shares(len(members)):
                work()

        balance()
        for is_joining in (True, True, False, False):
            if is_joining:
                members.append(join())
            else:
                members.pop(0).close()
            balance()
            work()
    while len(seen) < feed.sent:
        seen.update(int(record.value) for record in members[0].poll(0.1))
    members[0].close()
    assert sorted(seen) == list(range(feed.sent))
    assert set(seen.values()) == {1}, [n for n, times in seen.items() if times > 1]


async def test_rebalances_of_asyncio_members_under_load(cluster: Cluster) -> None:
    """An asyncio member that joins and leaves: every record is processed exactly once."""
    group = "rebalances-asyncio"
    feed, seen = _Feed(cluster, group), Counter[int]()
    words = {**feed.words, **MEMBER, "group_id": group}
    with Producer(feed.producing, linger_ms=0) as producer:

        async def work(*members: AsyncConsumer) -> None:
            await asyncio.to_thread(feed.feed, producer)
            for one in members:
                seen.update(int(record.value) for record in await one.poll(0.01))

        async with AsyncConsumer(group, **words) as first:
            while len(first.assignment) < PARTITIONS:
                await work(first)
            async with AsyncConsumer(group, **words) as second:
                while not (first.assignment and second.assignment):
                    await work(first, second)
                await work(first, second)
            while len(first.assignment) < PARTITIONS:
                await work(first)
            while len(seen) < feed.sent:
                seen.update(int(record.value) for record in await first.poll(0.1))
    assert sorted(seen) == list(range(feed.sent))
    assert set(seen.values()) == {1}, [n for n, times in seen.items() if times > 1]


class _Feed(Idempotent):
    """Numbers in a topic of a chosen name."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.topic = topic
        self.words = {"bootstrap_servers": cluster.bootstrap, **QUICK}
        self.producing = self.words
        self.sent = self.done = 0
        cluster.create_topic(topic, partitions=PARTITIONS, replication_factor=3)
        cluster.wait_in_sync(topic)


def _shares(count: int) -> list[int]:
    return sorted(PARTITIONS // count + (n < PARTITIONS % count) for n in range(count))


def test_member_that_crashes(cluster: Cluster) -> None:
    """The records that a crashed member was processing are read by another one."""
    feed, seen = _Feed(cluster, "crash"), Counter[int]()
    settings = {"config": feed.words, "group_id": "crash", **MEMBER}
    with Producer(feed.producing, linger_ms=0) as producer:
        feed.feed(producer)
        with pytest.raises(ZeroDivisionError), Consumer("crash", **settings) as first:
            while not seen:
                seen.update(int(record.value) for record in first.poll(0.1, max_records=5))
            raise ZeroDivisionError
        feed.feed(producer)
        with Consumer("crash", **settings) as second:
            while sum(seen.values()) < feed.sent + 1:
                seen.update(int(record.value) for record in second.poll(0.1))
    assert sorted(seen) == list(range(feed.sent))
