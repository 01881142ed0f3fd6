"""Responses with record bytes of a file: order, back pressure, and closing, on each event loop."""

import asyncio
import errno
import os
import random
import struct
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvloop

from ottla.base.buffers import FileRange
from ottla.base.files import RealFile, RealFileSystem
from ottla.net.buffers import ReceiveBuffers
from ottla.net.connection import Connection
from ottla.net.endpoint import Endpoint
from ottla.net.limits import Limits
from ottla.net.listener import RealNet
from ottla.net.port import Net
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.sending import RANGE_BYTES_MIN
from ottla.net.unsent import UnsentBudget
from ottla.testing.sim.files import SimFileSystem
from ottla.testing.sim.world import World

MIB = 1024 * 1024
# More than the socket buffers of both sides hold.
LARGE = 24 * MIB
SIZE = struct.Struct(">i")

Scenario = Callable[["Site"], Coroutine[Any, Any, None]]


class ByParts:
    """Responds to each frame with the next parts of a list, and counts the frames."""

    def __init__(self) -> None:
        self.answers: list[list[Any]] = []
        self.connections: list[Connection] = []

    def frame(self, connection: Connection, frame: memoryview) -> None:
        assert connection.range_bytes_min == RANGE_BYTES_MIN
        self.connections.append(connection)
        connection.send(self.answers.pop(0))


class Site:
    """An endpoint on a net, and a file with random content."""

    def __init__(self, net: Net, file: Any, content: bytes) -> None:
        self.net, self.file, self.content = net, file, content
        self.handler = ByParts()
        self.readers: list[Reader] = []
        self.endpoint = Endpoint(
            "PLAINTEXT",
            limits=Limits(),
            budget=ReceiveBudget(10**8),
            unsent=UnsentBudget(10**8),
            buffers=ReceiveBuffers(),
        )

    @property
    def connection(self) -> Connection:
        return self.handler.connections[-1]

    def range(self, position: int, size_bytes: int) -> FileRange:
        file_range: FileRange = self.file.range_at(position, size_bytes)
        return file_range

    def framed(self, parts: list[Any]) -> bytes:
        """Return the bytes that a client should read for a response."""
        body = b"".join(
            self.content[part.position : part.position + len(part)]
            if isinstance(part, FileRange)
            else bytes(part)
            for part in parts
        )
        return SIZE.pack(len(body)) + body


class Reader(asyncio.Protocol):
    """A client that records the received bytes; it reads nothing until `read` is called."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.closed = asyncio.get_running_loop().create_future()
        self.more = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.more.set()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(exc)
        self.more.set()

    def ask(self, count: int = 1) -> None:
        self.transport.write((SIZE.pack(1) + b"?") * count)  # type: ignore[attr-defined]

    async def read(self, size_bytes: int) -> bytes:
        """Read until so many bytes have arrived, or the connection is closed."""
        self.transport.resume_reading()  # type: ignore[attr-defined]
        while len(self.data) < size_bytes and not self.closed.done():
            self.more.clear()
            await self.more.wait()
        return bytes(self.data)


async def connect(site: Site) -> Reader:
    connected: list[Reader] = []

    def made() -> Reader:
        connected.append(Reader())
        return connected[-1]

    # The port's type is what brokers use; a plain protocol does as well.
    await site.net.connect(site.endpoint.host, site.endpoint.port, made)  # type: ignore[arg-type]
    site.readers.append(connected[0])
    connected[0].transport.pause_reading()  # type: ignore[attr-defined]
    return connected[0]


async def until(is_true: Callable[[], bool]) -> None:
    """Let the loop run until the condition is true."""
    while not is_true():
        await asyncio.sleep(0.001)


async def until_stalled(site: Site) -> None:
    """Return when the socket accepts no more bytes of a response."""
    await until(lambda: bool(site.handler.connections))
    before = -1
    while before != site.connection.unsent_bytes or not before:
        before = site.connection.unsent_bytes
        await asyncio.sleep(0.02)


async def play(site: Site, scenario: Scenario) -> None:
    await site.endpoint.open(site.net, "127.0.0.1", 0)
    site.endpoint.serve(site.handler)
    try:
        await scenario(site)
    finally:
        await site.endpoint.close(0)
        await until(lambda: not site.endpoint.connections_count)
        for reader in site.readers:
            reader.transport.abort()  # type: ignore[attr-defined]
            await reader.closed


Run = Callable[[Scenario], Site]


@pytest.fixture(params=["asyncio", "uvloop", "simulated"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Return a function that runs a scenario on an event loop, with its own files and network."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    content = random.Random(seed).randbytes(LARGE)

    def on_real_loop(scenario: Scenario) -> Site:
        path = tmp_path / "00000000000000000000.log"
        path.write_bytes(content)
        site = Site(RealNet(), RealFileSystem().open(str(path)), content)
        loop_factory = uvloop.new_event_loop if request.param == "uvloop" else None
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(asyncio.wait_for(play(site, scenario), 8))
        return site

    def simulated(scenario: Scenario) -> Site:
        with World(seed) as world:
            machine = world.machine("broker")
            file = machine.files.open("log", create=True)
            file.append(content)
            site = Site(machine.net, file, content)
            world.run(play(site, scenario))
        return site

    return simulated if request.param == "simulated" else on_real_loop


def test_ranges_and_small_answers_keep_their_order(run: Run) -> None:
    """Responses of every shape, requested at once and read slowly, arrive complete and in order."""

    async def scenario(site: Site) -> None:
        rng = random.Random(len(site.content))
        responses = []
        for _ in range(40):
            parts: list[Any] = [rng.randbytes(rng.choice((1, 60, 70_000, 300_000)))]
            for _ in range(rng.randrange(4)):
                size = rng.randrange(RANGE_BYTES_MIN, 2 * MIB)
                parts += [site.range(rng.randrange(LARGE - size), size), rng.randbytes(3)]
            responses.append(parts)
        site.handler.answers = list(responses)
        reader = await connect(site)
        reader.ask(len(responses))
        expected = b"".join(map(site.framed, responses))
        await until_stalled(site)
        assert await reader.read(len(expected)) == expected
        await until(lambda: not site.connection.unsent_bytes)
        assert site.endpoint.unsent.held_bytes == 0

    run(scenario)


def test_client_that_does_not_read_holds_a_range_and_no_memory(run: Run) -> None:
    """Unsent records are not in memory, and further requests wait until they are sent."""

    async def scenario(site: Site) -> None:
        site.handler.answers = [[b"head", site.range(0, LARGE), b"tail"], [b"next"]]
        reader = await connect(site)
        reader.ask(2)
        await until_stalled(site)
        assert site.connection.unsent_bytes > MIB
        # The simulated disk draws that bytes are cold; those are read in pieces of 64 KiB.
        allowed = 4096 if isinstance(site.net, RealNet) else 70_000
        assert 0 < site.endpoint.unsent.held_bytes < allowed
        assert len(site.handler.connections) == 1
        data = await reader.read(4 + 4 + LARGE + 4 + 4 + 4)
        assert data.endswith(b"tail" + SIZE.pack(4) + b"next")

    run(scenario)


def test_small_records_are_ranges_if_memory_is_scarce(run: Run) -> None:
    """Clients that do not read would otherwise hold one batch each, however many clients there are."""

    async def scenario(site: Site) -> None:
        site.handler.answers = [[b"one"]]
        reader = await connect(site)
        reader.ask(1)
        await reader.read(4 + 3)
        unsent = site.endpoint.unsent
        usual = site.connection.range_bytes_min
        unsent.hold(unsent.limit_bytes // 2 + 1)
        scarce = site.connection.range_bytes_min
        unsent.give_back(unsent.limit_bytes // 2 + 1)
        assert scarce <= 4096 < usual == site.connection.range_bytes_min

    run(scenario)


def test_records_that_are_sent_from_a_file_need_no_memory(run: Run) -> None:
    """Fetches are not cut if the memory for unsent responses is used up: they return ranges."""

    async def scenario(site: Site) -> None:
        site.handler.answers = [[b"one"]]
        reader = await connect(site)
        reader.ask(1)
        await reader.read(4 + 3)
        unsent = site.endpoint.unsent
        unsent.hold(unsent.limit_bytes)
        assert site.connection.answer_room_bytes > LARGE
        unsent.give_back(unsent.limit_bytes)

    run(scenario)


def test_truncated_records_are_not_sent(run: Run) -> None:
    """Bytes that are truncated while they are sent end the connection, and are not replaced by
    others.
    """

    async def scenario(site: Site) -> None:
        records = site.range(0, LARGE)
        site.handler.answers = [[b"head", records, b"tail"]]
        reader = await connect(site)
        reader.ask()
        await until_stalled(site)
        records.is_void = True
        site.file.truncate(LARGE - 1)
        site.file.append(b"other")
        data = await reader.read(LARGE + 12)
        assert reader.closed.done()
        assert len(data) < LARGE
        assert data[8:] == site.content[: len(data) - 8]

    run(scenario)


def test_file_that_became_shorter_ends_the_connection(run: Run) -> None:
    """A response whose bytes are missing is not completed with others, and nothing waits forever."""

    async def scenario(site: Site) -> None:
        site.handler.answers = [[b"head", site.range(0, LARGE), b"tail"]]
        reader = await connect(site)
        reader.ask()
        await until_stalled(site)
        site.file.truncate(MIB)
        await reader.read(LARGE + 12)
        assert reader.closed.done()

    run(scenario)


def test_drained_connection_sends_pending_responses(run: Run) -> None:
    """A stopping broker completes the responses that it has begun, then closes."""

    async def scenario(site: Site) -> None:
        parts = [b"head", site.range(5, LARGE - 5), b"tail"]
        site.handler.answers = [parts]
        reader = await connect(site)
        reader.ask()
        await until_stalled(site)
        closing = asyncio.ensure_future(site.endpoint.close(40))
        assert await reader.read(1 << 40) == site.framed(parts)
        await closing
        assert site.endpoint.connections_count == 0

    run(scenario)


def test_lost_connection_releases_everything(run: Run) -> None:
    """If a client disconnects during a response, its bytes and ranges are released."""

    async def scenario(site: Site) -> None:
        site.handler.answers = [[b"x" * 100_000, site.range(0, LARGE)], [b"never"]]
        reader = await connect(site)
        reader.ask(2)
        await until_stalled(site)
        assert site.endpoint.unsent.held_bytes
        reader.transport.abort()  # type: ignore[attr-defined]
        await until(lambda: not site.endpoint.connections_count)
        assert site.endpoint.unsent.held_bytes == 0
        assert not site.connection._queue

    run(scenario)


class ColdSource:
    """A file whose bytes are never in the page cache; counts its reads."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.reads = 0
        self.has_failed = False

    def note_failure(self) -> None:
        self.has_failed = True

    def is_cached(self, position: int, size_bytes: int) -> bool:
        return False

    def read_at(self, position: int, size_bytes: int) -> bytes:
        raise AssertionError("the event loop waits for the device")

    def read_in_background(self, position: int, size_bytes: int) -> Awaitable[bytes]:
        self.reads += 1
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bytes] = loop.create_future()
        loop.call_soon(done.set_result, self.content[position : position + size_bytes])
        return done


def test_cold_bytes_are_read_in_the_background(run: Run) -> None:
    """Bytes that have left the page cache since the fetch do not block the event loop."""

    async def scenario(site: Site) -> None:
        source = ColdSource(site.content)
        parts = [b"head", FileRange(source, 7, 3 * MIB), b"tail"]
        site.handler.answers = [parts, [b"next"]]
        reader = await connect(site)
        reader.ask(2)
        expected = site.framed(parts) + SIZE.pack(4) + b"next"
        assert await reader.read(len(expected)) == expected
        assert source.reads >= 12

    run(scenario)


class FailingSource(ColdSource):
    """A file on a device that has failed."""

    def read_in_background(self, position: int, size_bytes: int) -> Awaitable[bytes]:
        done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        done.set_exception(OSError(errno.EIO, "the device has failed"))
        return done


def test_file_that_cannot_be_read_is_noted_for_the_next_fetch(run: Run) -> None:
    """This response has begun: only the next one can have an error code."""

    async def scenario(site: Site) -> None:
        for source in (FailingSource(b""), ColdSource(b"")):
            site.handler.answers = [[b"head", FileRange(source, 7, MIB)]]
            reader = await connect(site)
            reader.ask()
            async with asyncio.timeout(10):
                await until(partial(getattr, source, "has_failed"))
            assert source.has_failed

    run(scenario)


def test_a_range_that_waits_for_an_earlier_answer_is_checked_again(run: Run) -> None:
    """Its bytes were in the page cache when they were fetched, which may be long ago."""

    async def scenario(site: Site) -> None:
        source = ColdSource(site.content)
        records = FileRange(source, 7, MIB)
        records.is_warm = True
        site.handler.answers = [[b"first"]]
        reader = await connect(site)
        reader.ask()
        await reader.read(9)
        assert site.connection.range_bytes_min
        earlier = site.connection.defer(is_blocking=False)
        later = site.connection.defer(is_blocking=False)
        later.send([b"head", records, b"tail"])
        earlier.send([b"one"])
        expected = SIZE.pack(5) + b"first" + SIZE.pack(3) + b"one"
        expected += site.framed([b"head", records, b"tail"])
        assert await reader.read(len(expected)) == expected
        assert source.reads >= 4

    run(scenario)


def test_closed_file_stays_open_for_its_ranges(tmp_path: Path) -> None:
    """A segment that is closed and removed can be sent to the end; then the descriptor is closed."""
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    file: RealFile = RealFileSystem().open(str(path))
    fd = file.fileno()
    records = file.range_at(2, 5)
    file.close()
    path.unlink()
    assert records.read() == b"23456"
    assert records.is_cached()
    del records
    with pytest.raises(OSError):
        os.fstat(fd)


def test_simulated_ranges_can_be_cold() -> None:
    """The simulated disk has the same operation, and randomly chooses the uncached bytes."""
    with World(3) as world:
        files: SimFileSystem = world.machine("broker").files
        file = files.open("log", create=True)
        file.append(b"0123456789")
        records = file.range_at(2, 5)
        assert records.read() == b"23456"
        assert {records.is_cached() for _ in range(100)} == {True, False}
