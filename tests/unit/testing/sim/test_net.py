"""The simulated network: the view of a protocol, and faults."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from ottla.base.rng import SeededRng
from ottla.net.listener import RealNet
from ottla.net.port import Net
from ottla.testing.sim.loop import SimLoop
from ottla.testing.sim.net import SimNetwork
from ottla.testing.sim.transport import PIPE_BYTES


class Recorder(asyncio.BufferedProtocol):
    """Records its calls, and wakes the tasks that wait for them."""

    def __init__(self, buffer_bytes: int = 1000) -> None:
        self.buffer = bytearray(buffer_bytes)
        self.received = bytearray()
        self.events: list[str] = []
        self.transport = cast(asyncio.Transport, None)
        self._changed = asyncio.Event()

    def _note(self, event: str) -> None:
        self.events.append(event)
        self._changed.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._note("made")

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.buffer)

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.buffer[:nbytes]
        self._changed.set()

    def eof_received(self) -> bool:
        self._note("eof")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._note(f"lost {type(exc).__name__}")

    def pause_writing(self) -> None:
        self._note("pause")

    def resume_writing(self) -> None:
        self._note("resume")

    async def until(self, condition: Callable[["Recorder"], bool]) -> None:
        """Wait until the condition is true."""
        async with asyncio.timeout(60):
            while not condition(self):
                self._changed.clear()
                await self._changed.wait()


async def pair(net: Net, other: Net | None = None) -> tuple[Recorder, Recorder]:
    """Connect two recorders; return the client and the accepted one."""
    accepted: list[Recorder] = []

    def accept() -> Recorder:
        accepted.append(Recorder())
        return accepted[-1]

    target = other or net
    listener = await target.listen("127.0.0.1", 0, accept)
    host = listener.host
    _, near = await net.connect(host, listener.port, Recorder)
    assert isinstance(near, Recorder)
    async with asyncio.timeout(60):
        while not accepted or not accepted[0].events:
            await asyncio.sleep(0)
    await listener.close()
    return near, accepted[0]


Scenario = Callable[[Net], Coroutine[Any, Any, None]]


async def bytes_arrive_in_order(net: Net) -> None:
    """Many writes are one stream."""
    near, far = await pair(net)
    data = bytes(range(256)) * 100
    for start in range(0, len(data), 999):
        near.transport.write(data[start : start + 999])
    far.transport.write(b"back")
    await far.until(lambda it: len(it.received) == len(data))
    await near.until(lambda it: bytes(it.received) == b"back")
    assert far.received == data
    near.transport.close()
    await far.until(lambda it: "lost NoneType" in it.events)


async def closing_sends_what_is_left(net: Net) -> None:
    """The peer reads all bytes, then the end; both ends are notified."""
    near, far = await pair(net)
    near.transport.write(b"x" * 5000)
    near.transport.close()
    near.transport.write(b"ignored")
    assert near.transport.is_closing()
    await far.until(lambda it: "lost NoneType" in it.events)
    await near.until(lambda it: "lost NoneType" in it.events)
    assert len(far.received) == 5000
    assert far.events == ["made", "eof", "lost NoneType"]
    assert near.events == ["made", "lost NoneType"]


async def a_slow_reader_pauses_the_writer(net: Net) -> None:
    """Bytes that the socket does not accept stay in the transport, and the protocol is paused."""
    near, far = await pair(net)
    far.transport.pause_reading()
    near.transport.set_write_buffer_limits(high=1000)
    total = 0
    while near.events == ["made"]:
        near.transport.write(b"x" * 50_000)
        total += 50_000
        await asyncio.sleep(0)
    assert near.transport.get_write_buffer_size() > 1000
    assert not far.received or len(far.received) < total
    far.transport.resume_reading()
    await far.until(lambda it: len(it.received) == total)
    await near.until(lambda it: "resume" in it.events)
    near.transport.abort()
    await near.until(lambda it: "lost NoneType" in it.events)
    await far.until(lambda it: it.events[-1].startswith("lost"))


async def nobody_listens(net: Net) -> None:
    """Connecting to a port without a listener fails, and so does a second listener on a port."""
    listener = await net.listen("127.0.0.1", 0, Recorder)
    with pytest.raises(OSError, match="in use"):
        await net.listen("127.0.0.1", listener.port, Recorder)
    await listener.close()
    await listener.close()
    with pytest.raises(ConnectionRefusedError):
        await net.connect("127.0.0.1", listener.port, Recorder)


async def ends_know_their_addresses(net: Net) -> None:
    """The address of one end is the peer address of the other."""
    near, far = await pair(net)
    assert near.transport.get_extra_info("peername") == far.transport.get_extra_info("sockname")
    assert far.transport.get_extra_info("peername") == near.transport.get_extra_info("sockname")
    near.transport.close()
    await far.until(lambda it: "lost NoneType" in it.events)


SCENARIOS: list[Scenario] = [
    bytes_arrive_in_order,
    closing_sends_what_is_left,
    a_slow_reader_pauses_the_writer,
    nobody_listens,
    ends_know_their_addresses,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda item: item.__name__)
async def test_real_network_has_the_assumed_properties(scenario: Scenario) -> None:
    """TCP on this machine has the properties that the simulation assumes."""
    await scenario(RealNet())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda item: item.__name__)
@pytest.mark.parametrize("seed", range(10))
def test_the_simulated_network_behaves_the_same(scenario: Scenario, seed: int) -> None:
    """The same scenarios run on virtual time, for several seeds."""
    with SimLoop(SeededRng(seed)) as loop:
        loop.run(scenario(SimNetwork(SeededRng(seed)).host("127.0.0.1")))


def test_a_partition_holds_bytes_until_it_heals() -> None:
    """No byte is lost, because TCP retransmits; until then no byte arrives and no connection
    succeeds.
    """
    network = SimNetwork(SeededRng(1))
    one, two = network.host("one"), network.host("two")

    async def main() -> None:
        near, far = await pair(one, two)
        network.partition(["one"], ["two"])
        near.transport.write(b"held")
        with pytest.raises(TimeoutError):
            await one.connect("two", 1, Recorder)
        assert not far.received
        network.heal()
        await far.until(lambda it: bytes(it.received) == b"held")

    with SimLoop(SeededRng(1)) as loop:
        loop.run(main())


def test_a_partition_may_cut_one_direction() -> None:
    """Responses arrive while requests do not."""
    network = SimNetwork(SeededRng(1))
    one, two = network.host("one"), network.host("two")

    async def main() -> None:
        near, far = await pair(one, two)
        network.partition(["one"], ["two"], both_ways=False)
        near.transport.write(b"held")
        far.transport.write(b"passes")
        await near.until(lambda it: bytes(it.received) == b"passes")
        assert not far.received

    with SimLoop(SeededRng(1)) as loop:
        loop.run(main())


def test_a_reset_breaks_both_ends() -> None:
    """Both protocols get a ConnectionResetError."""
    network = SimNetwork(SeededRng(1))
    one, two = network.host("one"), network.host("two")

    async def main() -> None:
        near, far = await pair(one, two)
        assert network.reset("one", "two") == 1
        for end in (near, far):
            await end.until(lambda it: "lost ConnectionResetError" in it.events)
        assert network.reset("one", "two") == 0

    with SimLoop(SeededRng(1)) as loop:
        loop.run(main())


def test_the_death_of_a_process_resets_its_connections() -> None:
    """Peers get a reset and the port is free, as the kernel does it."""
    network = SimNetwork(SeededRng(1))
    server, client = network.host("server"), network.host("client")

    async def main(loop: SimLoop) -> None:
        process = loop.process("server")
        future = loop.create_future()

        async def serve() -> None:
            listener = await server.listen("", 9092, Recorder)
            future.set_result(listener.port)
            await asyncio.Event().wait()

        loop.spawn(process, serve())
        _, near = await client.connect("server", await future, Recorder)
        assert isinstance(near, Recorder)
        process.kill()
        await near.until(lambda it: "lost ConnectionResetError" in it.events)
        with pytest.raises(ConnectionRefusedError):
            await client.connect("server", 9092, Recorder)
        await server.listen("", 9092, Recorder)

    with SimLoop(SeededRng(1)) as loop:
        loop.run(main(loop))


def test_socket_buffers_are_bounded() -> None:
    """A receiver that does not read takes no more than the pipe holds."""
    network = SimNetwork(SeededRng(1))

    async def main() -> None:
        near, far = await pair(network.host("one"))
        far.transport.pause_reading()
        near.transport.write(b"x" * (PIPE_BYTES + 12_345))
        assert near.transport.get_write_buffer_size() == 12_345
        await asyncio.sleep(10)
        assert near.transport.get_write_buffer_size() == 12_345

    with SimLoop(SeededRng(1)) as loop:
        loop.run(main())
