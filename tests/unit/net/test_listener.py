"""The real listener on both event loops: resets, and accept without free descriptors."""

import asyncio
import errno
import gc
import logging
import os
import resource
import socket
import struct
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.net.buffers import ReceiveBuffers
from ottla.net.connection import Connection
from ottla.net.endpoint import Endpoint
from ottla.net.limits import Limits
from ottla.net.listener import ACCEPTS_PER_TURN, AcceptLimit, RealListener, RealNet
from ottla.net.port import SocketBuffers, remedy
from ottla.net.receive_budget import ReceiveBudget
from ottla.net.unsent import UnsentBudget
from ottla.server.loop import event_loops

Run = Callable[[Coroutine[Any, Any, None]], None]
FACTORIES = event_loops()


@pytest.fixture(params=FACTORIES)
def run(request) -> Run:
    """Run a coroutine on one of the event loops."""

    def run_on(scene: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=FACTORIES[request.param]) as runner:
            runner.run(scene)

    return run_on


class Echo:
    """Responds with the frame."""

    def frame(self, connection: Connection, frame: memoryview) -> None:
        connection.send([bytes(frame)])


async def opened(*, serves: bool = True, limits: Limits | None = None) -> Endpoint:
    endpoint = Endpoint(
        "PLAINTEXT",
        limits=limits or Limits(),
        budget=ReceiveBudget(10**8),
        unsent=UnsentBudget(10**8),
        buffers=ReceiveBuffers(),
    )
    await endpoint.open(RealNet(), "127.0.0.1", 0)
    if serves:
        endpoint.serve(Echo())
    return endpoint


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


async def ask(endpoint: Endpoint, body: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
    writer.write(struct.pack(">i", len(body)) + body)
    async with asyncio.timeout(10):
        response = await reader.readexactly(4 + len(body))
    writer.close()
    return response[4:]


def reset_a_connection(port: int) -> None:
    """Connect and reset: the loop is not running, so it has not accepted the connection yet."""
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@contextmanager
def descriptor_limit(limit: int) -> Iterator[None]:
    """Lower the number of descriptors that this process may have open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def highest_descriptor() -> int:
    return max(int(name) for name in os.listdir("/dev/fd"))


@contextmanager
def no_free_descriptor(below: int = 2**31) -> Iterator[None]:
    """Use all descriptors, or all with a number below another one."""
    numbers: list[int] = []
    # A collection in the block would free the descriptors of other tests' objects.
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        while not numbers or numbers[-1] < below:
            try:
                numbers.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        yield
    finally:
        for descriptor in numbers:
            os.close(descriptor)
        if was_enabled:
            gc.enable()


def test_connection_reset_before_accept_is_counted_and_closed(run: Run) -> None:
    """A health check that connects and resets uses no descriptor, and clients are served."""

    async def scene() -> None:
        endpoint = await opened()
        # The loop opens descriptors of its own for the first connection.
        assert await ask(endpoint, b"first") == b"first"
        await until(lambda: endpoint.connections_count == 0)
        before = open_descriptors()
        for _ in range(20):
            reset_a_connection(endpoint.port)
        await until(lambda: endpoint.accepted_count == 21)
        await until(lambda: endpoint.connections_count == 0)
        await until(lambda: open_descriptors() <= before)
        assert await ask(endpoint, b"served") == b"served"
        await endpoint.close(1.0)

    run(scene())


def test_requests_wait_until_the_endpoint_serves(run: Run) -> None:
    """A request that arrives before `serve` gets its response after it, on either loop."""

    async def scene() -> None:
        endpoint = await opened(serves=False)
        asking = asyncio.ensure_future(ask(endpoint, b"early" * 100_000))
        await until(lambda: endpoint.connections_count == 1)
        for _ in range(200):
            await asyncio.sleep(0)
        (connection,) = endpoint._connections
        assert connection.frames_count == 0
        endpoint.serve(Echo())
        assert await asking == b"early" * 100_000
        await endpoint.close(1.0)

    run(scene())


def test_connections_are_rejected_if_no_descriptor_is_free(run: Run, caplog) -> None:
    """Waiting connections are closed at once, with one warning, and without an error on the loop."""
    errors: list[dict[str, Any]] = []

    async def scene() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        peers = [socket.socket() for _ in range(100)]
        highest = highest_descriptor()
        # A process may inherit a high number; the numbers below it count as free.
        with descriptor_limit(highest + 20), no_free_descriptor(below=highest):
            endpoint = await opened()
            with no_free_descriptor():
                connect_all(peers, endpoint)
                await until(lambda: all(map(is_closed_by_peer, peers)))
                assert endpoint.connections_count == 0
        for peer in peers:
            peer.close()
        assert await ask(endpoint, b"again") == b"again"
        await endpoint.close(1.0)

    with caplog.at_level(logging.WARNING):
        run(scene())
    assert errors == []
    warnings = [record for record in caplog.records if "refused" in record.getMessage()]
    assert len(warnings) == 1


def test_connections_leave_the_last_descriptors_to_files(run: Run) -> None:
    """Files can be opened while connections are rejected, whatever else uses descriptors."""

    async def scene() -> None:
        endpoint = await opened()
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        peers = [socket.socket() for _ in range(100)]
        highest = max(int(name) for name in os.listdir("/dev/fd"))
        fillers = [os.open(os.devnull, os.O_RDONLY)]
        while fillers[-1] < highest:
            fillers.append(os.open(os.devnull, os.O_RDONLY))
        # An eighth of all, at most 64, however many this process has open.
        reserved = min(64, (highest + 40) // 8)
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 20 + reserved, before[1]))
        try:
            connect_all(peers, endpoint)
            await until(
                lambda: sum(map(is_closed_by_peer, peers)) + endpoint.connections_count == 100
            )
            assert 0 < endpoint.connections_count <= 30
            fillers += [os.open(os.devnull, os.O_RDONLY) for _ in range(reserved // 2)]
        finally:
            for descriptor in fillers:
                os.close(descriptor)
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            for peer in peers:
                peer.close()
            # uvloop waits without end to close a loop with an open connection.
            await endpoint.close(1.0)

    run(scene())


def test_uvloops_server_is_replaced_when_half_of_the_descriptors_are_used(run: Run) -> None:
    """No client is disconnected, and from then on the last descriptors are left to files."""

    async def scene() -> None:
        limit = 4 * (highest_descriptor() + 20)
        with descriptor_limit(limit):
            endpoint = await opened()
            listener = endpoint._listener
            assert isinstance(listener, RealListener)
            is_uvloop = not isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop)
            assert len(listener._servers) == is_uvloop
            peers = []
            while highest_descriptor() < limit // 2 + 40:
                peers.append(await asyncio.open_connection("127.0.0.1", endpoint.port))
                await until(lambda: endpoint.connections_count == len(peers))
            assert listener._servers == []
            for reader, writer in peers:
                writer.write(struct.pack(">i", 4) + b"echo")
                async with asyncio.timeout(10):
                    assert await reader.readexactly(8) == struct.pack(">i", 4) + b"echo"
            assert listener.refused_count == 0
            for _, writer in peers:
                writer.close()
            await until(lambda: endpoint.connections_count == 0)
            assert await ask(endpoint, b"again") == b"again"
            await endpoint.close(1.0)

    run(scene())


def test_connections_are_closed_if_all_descriptors_are_used_at_once(run: Run) -> None:
    """Clients do not wait although uvloop's server is still in place; the next ones are served."""
    errors: list[dict[str, Any]] = []

    async def scene() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        peers = [socket.socket() for _ in range(20)]
        with descriptor_limit(4 * highest_descriptor()):
            endpoint = await opened()
            with no_free_descriptor():
                connect_all(peers, endpoint)
                await until(lambda: all(map(is_closed_by_peer, peers)))
        for peer in peers:
            peer.close()
        assert await ask(endpoint, b"again") == b"again"
        await endpoint.close(1.0)

    run(scene())
    assert errors == []


def connect_all(peers: list[socket.socket], endpoint: Endpoint) -> None:
    for peer in peers:
        peer.setblocking(False)
        assert peer.connect_ex(("127.0.0.1", endpoint.port)) in (0, errno.EINPROGRESS)


def is_closed_by_peer(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_connections_have_the_socket_buffers_of_the_options(run: Run) -> None:
    """Linux reports twice the size that was set; the send and the receive buffer differ here."""

    async def scene() -> None:
        endpoint = await opened(limits=Limits(socket_buffers=SocketBuffers(50_000, 70_000)))
        assert await ask(endpoint, b"x") == b"x"
        (connection,) = endpoint.active_since(0)
        sock = connection._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 100_000
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 140_000
        await endpoint.close(1.0)

    run(scene())


def test_closed_connections_are_freed_without_the_garbage_collector(run: Run) -> None:
    """References in a cycle would keep thousands of closed connections in memory.

    The listener has a reference to the last one until the next is accepted.
    """

    async def scene() -> None:
        endpoint = await opened()
        gc.disable()
        try:
            for _ in range(3):
                assert await ask(endpoint, b"x") == b"x"
            await until(lambda: endpoint.connections_count == 0)
            await until(lambda: len(connections_in_memory(endpoint)) <= 1)
            assert endpoint.accepted_count == 3
        finally:
            gc.enable()
        await endpoint.close(1.0)

    gc.collect()
    run(scene())


def connections_in_memory(endpoint: Endpoint) -> list[Connection]:
    return [
        found
        for found in gc.get_objects()
        if isinstance(found, Connection) and found._endpoint is endpoint
    ]


def accepted_by_turns(turns: AcceptLimit, waiting: int, turns_count: int) -> list[int]:
    """Return how many `accept` calls each turn makes while `waiting` connections arrive at once."""
    calls = []
    for _ in range(turns_count):
        count = turns.next_count()
        calls.append(min(count, waiting + 1))
        if count > waiting:
            turns.found_none()
            break
        turns.found_all()
        waiting -= count
    return calls


def test_turns_accept_more_while_connections_are_waiting() -> None:
    """A burst is accepted in growing groups up to a limit."""
    assert accepted_by_turns(AcceptLimit(), 1000, 9) == [1, 2, 4, 8, 16, 32, 64, 64, 64]
    assert ACCEPTS_PER_TURN == 64


def test_turns_rarely_look_for_a_second_connection() -> None:
    """Clients that come one after the other cost little more than one `accept` each."""
    turns, calls = AcceptLimit(), 0
    for _ in range(1000):
        count = turns.next_count()
        calls += count
        if count == 1:
            turns.found_all()
        else:
            turns.found_none()
    assert 1000 < calls <= 1000 + 22


def test_turns_find_a_burst_after_single_connections() -> None:
    """At most 64 turns after a quiet time accept one connection each before the groups grow."""
    turns = AcceptLimit()
    for _ in range(1000):
        if turns.next_count() == 1:
            turns.found_all()
        else:
            turns.found_none()
    calls = accepted_by_turns(turns, 10_000, 200)
    assert calls.count(1) <= 64
    assert calls[-1] == 64


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.EADDRINUSE, ""), "Stop the process that uses it, or choose another port"),
        (OSError(errno.EADDRNOTAVAIL, ""), "Use an address of this machine, or 0.0.0.0 for all"),
        (socket.gaierror(socket.EAI_AGAIN, ""), "Use an address of this machine"),
        (PermissionError(errno.EACCES, ""), "This user may not use a port that low: choose an"),
    ],
)
def test_remedy_depends_on_the_reason(error: OSError, sentence: str) -> None:
    """Another port does not help if the address belongs to another machine."""
    assert remedy(error, "choose another port").startswith(sentence)
