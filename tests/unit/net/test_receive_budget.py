"""Memory of incomplete requests, shared by honest and malicious clients.

The tests run whole endpoints on a simulated network and virtual time; requests are echoed.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from ottla.base.rng import SeededRng
from ottla.net.buffers import SHARED_BYTES, ReceiveBuffers
from ottla.net.connection import Connection
from ottla.net.endpoint import Endpoint
from ottla.net.limits import Limits
from ottla.net.receive_budget import ReceiveBudget, ReceiveMemory
from ottla.net.unsent import UnsentBudget
from ottla.testing.sim.loop import SimLoop
from ottla.testing.sim.net import SimNetwork

MIB = 1024 * 1024
LIMIT = 4 * MIB
# Larger than one read of a connection.
BODY = bytes(range(256)) * 4 * 700
PORT = 9092


class Client(asyncio.BufferedProtocol):
    """Sends bytes and counts the received ones."""

    def __init__(self) -> None:
        self.transport = cast(asyncio.Transport, None)
        self.received_bytes = 0
        self.is_lost = False
        self._buffer = memoryview(bytearray(64 * 1024))
        self._changed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received_bytes += nbytes
        self._changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._changed.set()

    def announce(self, announced_bytes: int, sent_bytes: int) -> None:
        """Send the beginning of a request."""
        self.transport.write(struct.pack(">i", announced_bytes) + bytes(sent_bytes))

    async def ask(self, body: bytes, seconds: float) -> None:
        """Send a request and wait for its response."""
        expected = self.received_bytes + 4 + len(body)
        self.transport.write(struct.pack(">i", len(body)) + body)
        await self.receive(expected, seconds)

    async def receive(self, expected: int, seconds: float) -> None:
        """Wait until so many bytes have been received since the connection was made."""
        async with asyncio.timeout(seconds):
            while self.received_bytes < expected:
                assert not self.is_lost, "the connection was closed"
                self._changed.clear()
                await self._changed.wait()
        assert self.received_bytes == expected


class Site:
    """An endpoint of a broker, and its clients."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.network = SimNetwork(SeededRng(1))
        self.budget = ReceiveBudget(LIMIT)
        self.endpoint = Endpoint(
            "PLAINTEXT",
            limits=Limits(frame_bytes_max=LIMIT),
            budget=self.budget,
            unsent=UnsentBudget(LIMIT),
            buffers=ReceiveBuffers(),
        )

    def frame(self, connection: Connection, frame: memoryview) -> None:
        connection.send([bytes(frame)])

    async def connect(self, host: str) -> Client:
        _, client = await self.network.host(host).connect("broker", PORT, Client)
        assert isinstance(client, Client)
        return client

    async def attackers(self, count: int, announced_bytes: int, sent_bytes: int) -> list[Client]:
        clients = [await self.connect("shared") for _ in range(count)]
        for client in clients:
            client.announce(announced_bytes, sent_bytes)
        # The bytes have arrived, or wait in the kernel because the broker does not read them.
        await asyncio.sleep(0.5)
        return clients


async def exhaust(site: Site) -> "asyncio.Future[None]":
    """Use up the memory; return the request of a client that waits until it is given back."""
    await asyncio.sleep(0.5)
    site.budget.hold(2 * LIMIT)
    waiting = asyncio.ensure_future((await site.connect("waiting")).ask(BODY, 100.0))
    await asyncio.sleep(0.5)
    assert site.budget.has_waiting
    return waiting


Scene = Callable[[Site], Awaitable[None]]


@pytest.fixture
def play() -> Callable[[Scene], None]:
    """Run a scenario beside an endpoint on virtual time; all memory must be released afterwards."""

    async def run(loop: asyncio.AbstractEventLoop, scene: Scene) -> None:
        site = Site(loop)
        await site.endpoint.open(site.network.host("broker"), "broker", PORT)
        site.endpoint.serve(site)
        await scene(site)
        await site.endpoint.close(5.0)
        assert site.budget.held_bytes == site.budget.parked_bytes == 0

    def run_on_virtual_time(scene: Scene) -> None:
        with SimLoop(SeededRng(1)) as loop:
            loop.run(run(loop, scene))
            loop.raise_failures()

    return run_on_virtual_time


def test_announced_sizes_hold_little_memory_and_delay_no_request(play) -> None:
    """Three connections that announce the largest request and send 15 bytes delay no request."""

    async def scene(site: Site) -> None:
        await site.attackers(3, LIMIT, 11)
        assert site.budget.held_bytes < LIMIT / 2
        honest = await site.connect("shared")
        await honest.ask(BODY, 1.0)

    play(scene)


def test_silent_requests_are_closed_if_others_wait_for_their_memory(play) -> None:
    """Forty connections that fill the memory and stop sending are closed; an established one waits."""

    async def scene(site: Site) -> None:
        honest = await site.connect("shared")
        await honest.ask(b"established", 1.0)
        attackers = await site.attackers(40, LIMIT, 300_000)
        await honest.ask(BODY, 5.0)
        assert any(client.is_lost for client in attackers)
        await honest.ask(BODY, 5.0)

    play(scene)


def test_silent_requests_of_established_connections_are_closed_later(play) -> None:
    """A connection that has completed requests may pause for longer, but not forever."""

    async def scene(site: Site) -> None:
        honest = await site.connect("shared")
        attackers = [await site.connect("shared") for _ in range(40)]
        for client in attackers:
            await client.ask(b"established", 1.0)
            client.announce(LIMIT, 300_000)
        await asyncio.sleep(0.5)
        await honest.ask(BODY, 15.0)

    play(scene)


def test_slow_upload_of_an_established_connection_is_not_closed(play) -> None:
    """A request of 100 KB at 5 KB/s gets its response although others wait for memory all the time."""

    async def scene(site: Site) -> None:
        honest = await site.connect("shared")
        await honest.ask(b"established", 1.0)
        honest.announce(100_000, 5_000)
        await asyncio.sleep(0.5)
        honest.transport.write(bytes(5_000))
        waiting = await exhaust(site)
        for _ in range(18):
            await asyncio.sleep(1.0)
            honest.transport.write(bytes(5_000))
        await honest.receive(15 + 4 + 100_000, 5.0)
        site.budget.give_back(2 * LIMIT)
        await waiting

    play(scene)


@pytest.mark.parametrize(
    ("sent_bytes", "seconds"), [(10_000, 40.0), (400_000, 20.0)], ids=["small", "large"]
)
def test_interrupted_upload_of_an_established_connection_is_not_closed(
    play, sent_bytes: int, seconds: float
) -> None:
    """A request continues after an interruption of the network, however scarce memory is."""

    async def scene(site: Site) -> None:
        honest = await site.connect("shared")
        await honest.ask(b"established", 1.0)
        honest.announce(2 * sent_bytes, sent_bytes)
        waiting = await exhaust(site)
        await asyncio.sleep(seconds)
        assert not honest.is_lost
        site.budget.give_back(2 * LIMIT)
        honest.transport.write(bytes(sent_bytes))
        await honest.receive(15 + 4 + 2 * sent_bytes, 5.0)
        await waiting

    play(scene)


def test_silent_established_connection_is_closed_last(play) -> None:
    """If memory is scarce for long, the silent request that holds much of it is closed."""

    async def scene(site: Site) -> None:
        silent, small = await site.connect("shared"), await site.connect("shared")
        for client in (silent, small):
            await client.ask(b"established", 1.0)
        silent.announce(LIMIT, 600_000)
        small.announce(20_000, 10_000)
        waiting = await exhaust(site)
        await asyncio.sleep(25.0)
        assert not silent.is_lost
        await asyncio.sleep(10.0)
        assert silent.is_lost
        assert not small.is_lost
        site.budget.give_back(2 * LIMIT)
        await waiting

    play(scene)


def test_established_connections_that_stop_do_not_stop_other_addresses(play) -> None:
    """A client is served before the requests that have stopped are closed, and none is closed."""

    async def scene(site: Site) -> None:
        honest = await site.connect("other")
        stopped = [await site.connect(f"host{number % 4}") for number in range(40)]
        for client in stopped:
            await client.ask(b"established", 1.0)
            client.announce(LIMIT, 127 * 1024)
        await asyncio.sleep(0.5)
        assert site.budget.held_bytes > LIMIT
        await honest.ask(BODY, 5.0)
        assert not any(client.is_lost for client in stopped)

    play(scene)


def test_slow_trickle_is_no_progress(play) -> None:
    """One byte a second is not enough to keep the memory of a request."""

    async def scene(site: Site) -> None:
        attackers = await site.attackers(40, LIMIT, 300_000)

        async def trickle() -> None:
            while True:
                await asyncio.sleep(0.5)
                for client in attackers:
                    client.transport.write(b"x")

        trickling = asyncio.ensure_future(trickle())
        honest = await site.connect("shared")
        await honest.ask(BODY, 10.0)
        trickling.cancel()

    play(scene)


def test_one_address_leaves_memory_to_others(play) -> None:
    """A client of another address does not wait, however much memory one address uses."""

    async def scene(site: Site) -> None:
        await site.attackers(40, LIMIT, 300_000)
        honest = await site.connect("other")
        await honest.ask(BODY, 0.5)

    play(scene)


def test_first_reads_count_for_the_share_of_an_address(play) -> None:
    """Many connections of one address that send 31 KiB and stop leave memory to other addresses."""

    async def scene(site: Site) -> None:
        await site.attackers(200, LIMIT, 31 * 1024)
        # The last read may exceed the share.
        assert site.budget.held_bytes <= site.budget.host_bytes_max + SHARED_BYTES + 200 * 4096
        honest = await site.connect("other")
        await honest.ask(BODY, 0.5)

    play(scene)


def test_requests_above_the_memory_are_all_answered(play) -> None:
    """Thirty large requests at a time alternate, and none waits forever."""

    async def scene(site: Site) -> None:
        clients = [await site.connect("shared") for _ in range(30)]
        await asyncio.gather(*(client.ask(BODY, 60.0) for client in clients))

    play(scene)


def test_time_waiting_for_memory_closes_no_connection(play) -> None:
    """A first request that waits minutes for memory gets its response when there is some."""

    async def scene(site: Site) -> None:
        site.budget.hold(2 * LIMIT)
        client = await site.connect("shared")
        asking = asyncio.ensure_future(client.ask(BODY, 1000.0))
        await asyncio.sleep(700.0)
        assert not asking.done()
        site.budget.give_back(2 * LIMIT)
        await asking

    play(scene)


def test_reads_are_small_while_memory_is_exhausted(play) -> None:
    """While no memory is available, only a small part of each request is read."""

    async def scene(site: Site) -> None:
        site.budget.hold(2 * LIMIT)
        clients = await site.attackers(20, LIMIT, 300_000)
        assert site.budget.held_bytes - 2 * LIMIT <= len(clients) * 4 * 1024
        site.budget.give_back(2 * LIMIT)

    play(scene)


def test_a_small_frame_is_granted_before_large_ones() -> None:
    """Small requests of producers do not queue behind larger ones that came earlier."""
    budget, granted = ReceiveBudget(LIMIT), []
    budget.hold(2 * LIMIT)
    memories = {}
    for name, wanted_bytes in (("large", 3 * MIB), ("small", MIB), ("also small", MIB)):
        memory = ReceiveMemory(budget, "host", lambda name=name: granted.append(name))
        memory.begin(4096, wanted_bytes)
        assert not memory.grow()
        memories[name] = memory
    budget.give_back(2 * LIMIT)
    assert granted == ["small", "also small", "large"]
    for memory in memories.values():
        memory.leave()
    assert budget.held_bytes == budget.parked_bytes == 0


def test_lost_connection_does_not_block_the_queue() -> None:
    """The next connection in the queue gets the memory."""
    budget, granted = ReceiveBudget(LIMIT), []
    budget.hold(2 * LIMIT)
    first = ReceiveMemory(budget, "host", lambda: granted.append("first"))
    second = ReceiveMemory(budget, "host", lambda: granted.append("second"))
    for memory in (first, second):
        memory.begin(4096, MIB)
        assert not memory.grow()
    first.leave()
    budget.give_back(2 * LIMIT)
    assert granted == ["second"]
    second.leave()
    assert not budget.has_waiting
