"""Fetches of a client beyond its quota return no records, and lose none."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ottla.server.handlers import fetch
from ottla.server.quotas.clients import ClientQuotas, RequestUsage, client_quotas
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from tests.handlers.logs import LogsBroker, batch, logs_broker

VERSION = 12
# About 200 bytes with their batch; ten seconds at 30 bytes a second are 300.
RECORD = bytes(130)


class Consumer:
    """A client that fetches one partition in a session."""

    def __init__(self, broker: LogsBroker, quotas: ClientQuotas) -> None:
        self.broker = broker
        self._quotas = quotas
        self.session_id = self.epoch = 0
        self.throttle_ms = 0

    def begin(self, *offsets: int, **fields: Any) -> Any:
        """Fetch from these offsets of the partition (default: as the session has them)."""
        client = self._quotas.client("ANONYMOUS", "c")
        assert client is not None
        context = self.broker.context(fetch, VERSION)
        now = self.broker.clock.monotonic
        context.usage = RequestUsage(client, now())
        fetch_partitions = [
            FetchPartition(fetch_offset=offset, partition_max_bytes=1000) for offset in offsets
        ]
        request = FetchRequest(
            topics=[FetchTopic(topic="t", partitions=fetch_partitions)] if fetch_partitions else [],
            session_id=self.session_id,
            session_epoch=self.epoch,
            **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 10_000, **fields},
        )
        response = fetch.handle(context, request)
        self._settle = lambda: context.usage.settle(now())
        return response

    def take(self, response: FetchResponse) -> int:
        """Return the number of record bytes, and advance the session."""
        self.throttle_ms = self._settle()
        self.session_id = response.session_id
        self.epoch = self.epoch + 1 if response.session_id else 0
        return sum(
            len(item.records or b"") for topic in response.responses for item in topic.partitions
        )


@pytest.fixture
async def consumer() -> AsyncIterator[Consumer]:
    """Return a client limited to 30 bytes per second, and a partition with three records."""
    async with logs_broker() as broker:
        quotas = client_quotas(broker.options, broker.clock)
        quotas.settings_changed("clients", "c", {"consumer_byte_rate": "30"})
        broker.create("t")
        partition = broker.replicas.get("t", 0)
        for _ in range(3):
            partition.append_as_leader(batch(RECORD), acks=1)
        yield Consumer(broker, quotas)


def pass_time(consumer: Consumer, seconds: float) -> None:
    """Advance the clock."""
    consumer.broker.clock.now += seconds  # type: ignore[attr-defined]


async def test_session_continues_after_throttling(consumer: Consumer) -> None:
    """Beyond the quota the response mentions no partition; then the same records follow."""
    assert consumer.take(consumer.begin(0)) > 0
    assert consumer.throttle_ms == 0
    session_id = consumer.session_id
    response = consumer.begin(1)
    assert response.responses == []
    assert consumer.take(response) == 0
    assert (response.session_id, response.error_code) == (session_id, 0)
    assert consumer.throttle_ms > 1_000
    pass_time(consumer, 11)
    assert consumer.take(consumer.begin()) > 0
    assert consumer.throttle_ms == 0


async def test_no_session_begins_beyond_the_quota(consumer: Consumer) -> None:
    """The client repeats the full fetch, because the response has no partitions (KIP-219)."""
    consumer.take(consumer.begin(0))
    sessions = len(consumer.broker.fetch_sessions)
    consumer.session_id = consumer.epoch = 0
    response = consumer.begin(1)
    assert (response.session_id, response.responses) == (0, [])
    assert len(consumer.broker.fetch_sessions) == sessions
    assert consumer.take(response) == 0
    pass_time(consumer, 11)
    assert consumer.take(consumer.begin(1)) > 0


async def test_fetch_reads_no_more_than_the_quota_allows(consumer: Consumer) -> None:
    """A fetch reads at most ten seconds of the quota at once, but always one batch."""
    assert 150 < consumer.take(consumer.begin(0)) < 300


async def test_a_fetch_that_waited_is_settled_when_it_ends(consumer: Consumer) -> None:
    """The wait costs nothing, and beyond the quota new records do not complete the fetch."""
    consumer.take(consumer.begin(0))
    waiting = consumer.begin(3, max_wait_ms=60_000)
    assert isinstance(waiting, asyncio.Future)
    consumer.broker.replicas.get("t", 0).append_as_leader(batch(RECORD), acks=1)
    assert consumer.take(await waiting) == 0
    assert consumer.throttle_ms > 1_000
