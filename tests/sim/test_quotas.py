"""Quotas of a broker on virtual time, with clients that are throttled for minutes."""

import pytest

from ottla.testing.sim.client import SimConnection, connect
from ottla.testing.sim.world import World
from ottla.wire.messages import alter_client_quotas as quotas
from ottla.wire.messages import fetch, produce
from ottla.wire.records.records import Record, decode_batch, encode_batch

from . import brokers
from .clients import TOPIC, judge, new_topic
from .one_broker import SETTINGS

pytestmark = pytest.mark.slow

LIMIT = 100_000
BATCHES = 5
SECONDS = 60


class Site:
    """A broker with one topic, and its clients."""

    def __init__(self, world: World) -> None:
        self.machine = world.machine("broker")
        self.net = world.network.host("client")
        self.clock = self.machine.clock
        self.produced = self.throttled_ms = 0
        self.fetched = bytearray()

    async def start(self) -> None:
        """Start the broker, create the topic, and set quotas for both clients."""
        await brokers.start(self.machine, SETTINGS)
        admin = await self.connect("admin")
        await admin.send(new_topic(TOPIC, 1, {}), 5)
        entries = [
            quotas.AlterClientQuotasRequestEntryData(
                entity=[quotas.EntityData(entity_type="client-id", entity_name=name)],
                ops=[quotas.OpData(key=key, value=LIMIT)],
            )
            for name, key in (("writer", "producer_byte_rate"), ("reader", "consumer_byte_rate"))
        ]
        request = quotas.AlterClientQuotasRequest(entries=entries)
        response = await admin.request(request, 1, quotas.AlterClientQuotasResponse)
        assert [item.error_code for item in response.entries] == [0, 0]

    async def connect(self, client_id: str) -> SimConnection:
        """Return a connection to the broker."""
        return await connect(self.net, "broker", 9092, client_id)

    async def write(self, until: float) -> None:
        """Produce as fast as the broker allows, ignoring throttle times."""
        connection = await self.connect("writer")
        while self.clock.monotonic() < until:
            sent = [connection.send(_produce(self.produced + n), 9) for n in range(BATCHES)]
            for future in sent:
                response = await future
                assert isinstance(response, produce.ProduceResponse)
                judge(response.responses[0].partition_responses[0].error_code)
                self.throttled_ms += response.throttle_time_ms
                self.produced += 1
            await self.clock.sleep(0.001)

    async def read(self, until: float) -> None:
        """Fetch as fast as the broker allows."""
        connection, offset = await self.connect("reader"), 0
        while self.clock.monotonic() < until:
            requested = fetch.FetchPartition(fetch_offset=offset, partition_max_bytes=50_000)
            request = fetch.FetchRequest(
                max_wait_ms=100,
                min_bytes=1,
                max_bytes=50_000,
                session_epoch=-1,
                topics=[fetch.FetchTopic(topic=TOPIC, partitions=[requested])],
            )
            response = await connection.request(request, 12, fetch.FetchResponse)
            for topic in response.responses:
                records = bytes(topic.partitions[0].records or b"")
                self.fetched += records
                offset += len(records) // len(_batch(0))


def _batch(number: int) -> bytearray:
    return encode_batch([Record(None, b"%010d" % number * 500)])


def _produce(number: int) -> produce.ProduceRequest:
    data = produce.PartitionProduceData(index=0, records=bytes(_batch(number)))
    return produce.ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[produce.TopicProduceData(name=TOPIC, partition_data=[data])],
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_clients_that_ignore_throttle_times_are_limited(seed: int) -> None:
    """Over a minute the rates keep to the quotas, except for ten seconds' worth of bytes at the
    start; consumers read all records.
    """

    async def scenario(world: World) -> Site:
        site = Site(world)
        await site.start()
        until = site.clock.monotonic() + SECONDS
        reader = world.loop.create_task(site.read(until))
        await site.write(until)
        await reader
        return site

    with World(seed) as world:
        site = world.run(scenario(world))
    allowed = LIMIT * (SECONDS + 10)
    written = site.produced * len(_batch(0))
    assert 0.75 * allowed < written < 1.05 * allowed
    assert site.throttled_ms > 0
    assert 0.5 * written < len(site.fetched) < 1.05 * allowed
    size = len(_batch(0))
    for number in range(len(site.fetched) // size):
        (record,) = decode_batch(site.fetched, number * size)
        assert (record.value or b"")[:10] == b"%010d" % number
