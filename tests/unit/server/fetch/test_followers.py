"""Fetches of followers: which partitions of a session the leader looks at."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest_asyncio

from ottla.cluster.image import PartitionImage, TopicImage
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
