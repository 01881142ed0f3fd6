"""Strangers at an endpoint: their time, their number and their memory are bounded."""

import asyncio
import struct
from collections.abc import Awaitable, Callable

import pytest

from ottla.base.rng import SeededRng
from ottla.net.admission.newcomers import Bounds
from ottla.net.buffers import ReceiveBuffers
from ottla.net.connection import Connection
from ottla.net.endpoint import Endpoint
from ottla.net.limits import Limits
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.unsent import UnsentBudget
from ottla.testing.sim.loop import SimLoop
from ottla.testing.sim.net import SimNetwork
from tests.unit.net.test_receive_budget import Client

PORT = 9092
MIB = 1024 * 1024
PASSWORD = b"secret"


class Site:
    """An endpoint whose clients are known after one frame: the password."""

    def __init__(self) -> None:
        self.network = SimNetwork(SeededRng(1))
        self.budget = ReceiveBudget(64 * MIB)
        self.endpoint = Endpoint(
            "SASL",
            limits=Limits(frame_bytes_max=65_536, connections_max=100),
            budget=self.budget,
            unsent=UnsentBudget(MIB),
            buffers=ReceiveBuffers(),
        )
        self.endpoint.is_gated = True
        self.endpoint.rooms.bound(Bounds(30, 20))

    def frame(self, connection: Connection, frame: memoryview) -> None:
        """Respond with the frame; pass the connection on if it has the password."""
        if bytes(frame) == PASSWORD:
            connection.pass_to(self, MIB)
        connection.send([bytes(frame)])

    async def connect(self, host: str) -> Client:
        _, client = await self.network.host(host).connect("broker", PORT, Client)
        assert isinstance(client, Client)
        return client

    async def crowd(self, count: int, host: str) -> list[Client]:
        return [await self.connect(host) for _ in range(count)]


Scene = Callable[[Site], Awaitable[None]]


@pytest.fixture
def play() -> Callable[[Scene], None]:
    """Run a scenario beside an endpoint on virtual time."""

    async def run(scene: Scene) -> None:
        site = Site()
        await site.endpoint.open(site.network.host("broker"), "broker", PORT)
        site.endpoint.serve(site)
        await scene(site)
        await site.endpoint.close(5.0)
        assert site.endpoint.rooms.connections.count() == 0
        assert site.budget.held_bytes == 0

    def run_on_virtual_time(scene: Scene) -> None:
        with SimLoop(SeededRng(1)) as loop:
            loop.run(run(scene))
            loop.raise_failures()

    return run_on_virtual_time


def test_client_that_does_not_authenticate_is_closed_in_time(play) -> None:
    """Also one that sends requests all the time; a known client stays."""

    async def scene(site: Site) -> None:
        known, busy, silent = await site.crowd(3, "home")
        await known.ask(PASSWORD, 1.0)
        for _ in range(9):
            await busy.ask(b"hello", 1.0)
            await asyncio.sleep(1.0)
        assert not busy.is_lost
        await asyncio.sleep(7.0)
        assert busy.is_lost
        assert silent.is_lost
        assert not known.is_lost
        assert site.endpoint.rooms.timed_out_count == 2

    play(scene)


def test_idle_strangers_do_not_lock_clients_out(play) -> None:
    """A crowd opens as many connections as it can: others are still served."""

    async def scene(site: Site) -> None:
        await site.crowd(200, "attacker")
        await site.crowd(200, "other attacker")
        for host in ("home", "office"):
            client = await site.connect(host)
            await client.ask(PASSWORD, 1.0)
        assert site.endpoint.connections_count <= 33
        rooms = site.endpoint.rooms.connections
        assert rooms.refused_count + rooms.displaced_count >= 370

    play(scene)


def test_known_clients_are_not_bounded(play) -> None:
    """The bounds are for strangers: one address may have many clients that are known."""

    async def scene(site: Site) -> None:
        clients = []
        for _ in range(50):
            client = await site.connect("office")
            await client.ask(PASSWORD, 1.0)
            clients.append(client)
        assert not any(client.is_lost for client in clients)

    play(scene)


def test_strangers_hold_little_memory(play) -> None:
    """Requests before authentication have 64 KiB at most, and the strangers are few."""

    async def scene(site: Site) -> None:
        loud = await site.connect("loud")
        loud.transport.write(struct.pack(">i", 65_537))
        await asyncio.sleep(0.1)
        assert loud.is_lost
        for number in range(3):
            for client in await site.crowd(20, f"attacker-{number}"):
                client.announce(65_536, 65_000)
        await asyncio.sleep(0.5)
        # With its size prefix, such a request has a buffer of the next power of two.
        assert site.budget.held_bytes <= 30 * 2 * 65_536
        known = await site.connect("home")
        await known.ask(PASSWORD, 1.0)
        await known.ask(bytes(MIB - 1), 1.0)

    play(scene)
