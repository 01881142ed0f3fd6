"""A whole broker whose wall clock jumps forward and back, and runs at half its speed (scenario 12)."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from ottla.coordinators.txn.machine import ProducerIdAndEpoch
from ottla.testing.sim.client import connect
from ottla.testing.sim.world import World
from ottla.wire.messages import heartbeat, join_group, list_offsets, sync_group

from . import brokers
from .one_transaction import SETTINGS, TOPICS, Client, Later

pytestmark = pytest.mark.slow

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MEMBERS = "members"
SESSION_MS = 10_000
# Everything that expires is checked every second; records may be a day old, offsets and ids a week.
OFTEN = {
    "log.initial.task.delay.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.retention.ms": str(DAY_MS),
    # One segment, so that one fetch reads everything.
    "log.roll.ms": str(400 * DAY_MS),
    "producer.id.expiration.check.interval.ms": "1000",
    "offsets.retention.check.interval.ms": "1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
}


@dataclass
class Leap:
    """The error of the wall clock: a jump in milliseconds, the jump back, and the drift in each
    second.
    """

    at_once_ms: int = 0
    each_second_ms: int = 0


LEAPS = {
    "two days ahead": Leap(2 * DAY_MS),
    "two days behind": Leap(-2 * DAY_MS),
    "an hour ahead": Leap(HOUR_MS),
    "an hour behind": Leap(-HOUR_MS),
    "a month ahead": Leap(30 * DAY_MS),
    "half the pace": Leap(each_second_ms=-500),
}
each_leap = pytest.mark.parametrize("leap", LEAPS.values(), ids=LEAPS.keys())


class Site:
    """A broker, and a client that runs through a jump second by second."""

    def __init__(self, world: World, leap: Leap) -> None:
        self.machine = world.machine("broker")
        self.net = world.network.host("client")
        self.leap = leap
        self.generation = -1
        self.member = ""

    async def start(self) -> Client:
        """Start the broker; return a client whose topics and coordinators exist."""
        machine = self.machine
        await brokers.start(machine, SETTINGS | OFTEN)
        client = Client(await connect(self.net, "broker", 9092, "client"), machine.clock)
        await self.until_ready(client.prepare)
        return client

    async def until_ready(self, step: Callable[[], "asyncio.Future[None] | object"]) -> None:
        """Repeat a step while the broker is not ready for it."""
        while True:
            try:
                await step()  # type: ignore[misc]
            except Later:
                await self.machine.clock.sleep(0.1)
            else:
                return

    async def seconds(self, client: Client, count: int, *, leaps_at: int, back_at: int) -> None:
        """Let time pass, with a heartbeat in every second that must be in time."""
        for second in range(count):
            self.machine.clock.move_wall(self.leap.each_second_ms)
            if second == leaps_at:
                self.machine.clock.move_wall(self.leap.at_once_ms)
            if second == back_at:
                self.machine.clock.move_wall(-self.leap.at_once_ms)
            await self.machine.clock.sleep(1)
            if self.member:
                await self.beat(client)

    async def join(self, client: Client) -> None:
        """Become the only member of a group."""
        for _ in range(2):
            response = await client.ask(
                join_group.JoinGroupRequest(
                    group_id=MEMBERS,
                    session_timeout_ms=SESSION_MS,
                    rebalance_timeout_ms=SESSION_MS,
                    member_id=self.member,
                    protocol_type="consumer",
                    protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"")],
                ),
                5,
                join_group.JoinGroupResponse,
            )
            self.member, self.generation = response.member_id, response.generation_id
        assert response.error_code == 0
        mine = sync_group.SyncGroupRequestAssignment(member_id=self.member, assignment=b"all")
        request = sync_group.SyncGroupRequest(
            group_id=MEMBERS,
            generation_id=self.generation,
            member_id=self.member,
            assignments=[mine],
        )
        synced = await client.ask(request, 3, sync_group.SyncGroupResponse)
        assert (synced.error_code, synced.assignment) == (0, b"all")

    async def beat(self, client: Client) -> None:
        """Send a heartbeat; an expired session would be an error."""
        request = heartbeat.HeartbeatRequest(
            group_id=MEMBERS, generation_id=self.generation, member_id=self.member
        )
        assert (await client.ask(request, 3, heartbeat.HeartbeatResponse)).error_code == 0


async def first_offset(client: Client, name: str) -> int:
    """Return the log start offset of a topic."""
    requested = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-2)
    topic = list_offsets.ListOffsetsTopic(name=name, partitions=[requested])
    request = list_offsets.ListOffsetsRequest(replica_id=-1, topics=[topic])
    response = await client.ask(request, 6, list_offsets.ListOffsetsResponse)
    return response.topics[0].partitions[0].offset


async def begin(
    client: Client, text: str, site: Site, timeout_ms: int = 60_000
) -> ProducerIdAndEpoch:
    """Begin a transaction with records and offsets, with a new epoch of its producer."""
    producer = await client.init(timeout_ms)
    await site.until_ready(lambda: client.write(producer, text))
    return producer


async def end(client: Client, producer: ProducerIdAndEpoch, site: Site) -> None:
    """Commit, and wait until the markers are written everywhere."""
    await site.until_ready(lambda: client.end(producer, is_commit=True))
    while not await client.is_decided():
        await site.machine.clock.sleep(0.01)


@each_leap
@pytest.mark.parametrize("seed", [1, 2])
def test_clock_jump_expires_nothing_in_use(leap: Leap, seed: int) -> None:
    """Sessions, transactions, new records, offsets and ids do not expire because of a jump."""

    async def scenario(world: World) -> None:
        site = Site(world, leap)
        client = await site.start()
        await site.join(client)
        await end(client, await begin(client, "1", site), site)
        producer = await begin(client, "2", site)
        await site.seconds(client, 20, leaps_at=3, back_at=10**9)
        await end(client, producer, site)
        # Written while the clock is wrong.
        producer = await begin(client, "3", site)
        await site.seconds(client, 20, leaps_at=10**9, back_at=3)
        await end(client, producer, site)
        for name in TOPICS:
            assert await first_offset(client, name) == 0
            assert await client.read(name) == ["1", "2", "3"]
        assert await client.offset() == 3

    with World(seed) as world:
        world.run(scenario(world))


@each_leap
def test_abandoned_transaction_and_session_expire_in_time(leap: Leap) -> None:
    """A transaction expires after two seconds and a session after ten, by the monotonic clock."""

    async def scenario(world: World) -> None:
        site = Site(world, leap)
        client = await site.start()
        await begin(client, "1", site, timeout_ms=2000)
        await site.join(client)
        member, site.member = site.member, ""
        assert not await client.is_decided()
        await site.seconds(client, 5, leaps_at=0, back_at=10**9)
        assert await client.is_decided()
        assert await client.read(TOPICS[0]) == []
        await site.seconds(client, 7, leaps_at=10**9, back_at=10**9)
        gone = heartbeat.HeartbeatRequest(
            group_id=MEMBERS, generation_id=site.generation, member_id=member
        )
        assert (await client.ask(gone, 3, heartbeat.HeartbeatResponse)).error_code != 0

    with World(3) as world:
        world.run(scenario(world))
