"""A tree that is served in ZooKeeper's protocol: its sessions, and what hostile bytes do."""

import asyncio
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from ottla.base.clock import RealClock
from ottla.base.files import RealFileSystem
from ottla.base.rng import SystemRng
from ottla.cluster.zk import jute, stored_sessions
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import (
    Check,
    Create,
    EnsembleUnreachable,
    NoAuth,
    NodeExists,
    SessionLost,
    SessionState,
    SetData,
)
from ottla.cluster.zk.tree_server import TreeServer
from ottla.net.listener import RealNet
from ottla.security.zookeeper.login import Login

_CONNECT = struct.Struct(">iqiqi16s?")


class Service:
    """One tree on disk with its server, which can be restarted on the same port."""

    def __init__(self, directory: Path, login: Login | None = None) -> None:
        self._login = login
        self.directory = f"{directory}/tree"
        self.port = 0
        self.tree: EmbeddedTree
        self._server: TreeServer | None = None
        self._sessions: list[LiveSession] = []

    async def start(self) -> None:
        """Open the tree and serve it."""
        self.tree = EmbeddedTree(RealFileSystem(), RealClock(), self.directory, is_shared=True)
        self._server = TreeServer(self.tree, SystemRng(), self._login)
        await self._server.open(RealNet(), "127.0.0.1", self.port)
        self.port = self._server.port

    async def stop(self) -> None:
        """Stop serving; the files stay."""
        if self._server is not None:
            await self._server.close()
            await self.tree.close()
            self._server = None

    async def session(self, timeout_ms: int = 10_000, login: Login | None = None) -> LiveSession:
        """Start a session."""
        address = f"127.0.0.1:{self.port}"
        session = await LiveSession.begin(address, timeout_ms=timeout_ms, login=login)
        self._sessions.append(session)
        return session

    async def close(self) -> None:
        """End everything."""
        for session in self._sessions:
            await session.close()
        await self.stop()

    async def send(self, *packets: bytes) -> bytes:
        """Send bytes on a connection of its own, and return what arrives until it is closed."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        for packet in packets:
            writer.write(packet)
        async with asyncio.timeout(5):
            response = await reader.read()
        writer.close()
        return response


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """A tree that is served."""
    service = Service(tmp_path)
    await service.start()
    yield service
    await service.close()


def states_of(session: LiveSession) -> "asyncio.Queue[SessionState]":
    """Return the states that a session enters from now on."""
    states: asyncio.Queue[SessionState] = asyncio.Queue()
    session.on_session(states.put_nowait)
    return states


async def test_session_goes_on_after_the_server_restarts(service: Service) -> None:
    """Session id and ephemeral node survive; the session's watch fires after the reconnection."""
    session = await service.session()
    states, announced = states_of(session), asyncio.Queue[str]()
    await session.create("/mine", b"data", ephemeral=True)
    await session.get("/mine", announced.put_nowait)
    session_id = session.session_id
    await service.stop()
    async with asyncio.timeout(10):
        assert await states.get() is SessionState.SUSPENDED
        assert session.session_id == session_id
        await service.start()
        assert await states.get() is SessionState.CONNECTED
        assert await announced.get() == "/mine"
    data, stat = await session.get("/mine")
    assert (data, stat.ephemeral_owner, session.session_id) == (b"data", session_id, session_id)


async def test_nodes_have_the_times_of_creation_and_of_the_last_change(service: Service) -> None:
    """Also after a restart: Apache Kafka removes notifications that look 15 minutes old."""
    clock = RealClock()
    session = await service.session()
    times = [clock.time_ms()]
    await session.create("/a", b"1")
    times.append(clock.time_ms())
    await session.set("/a", b"2")
    times.append(clock.time_ms())
    before = await session.details("/a")
    await service.stop()
    await service.start()
    after = await (await service.session()).details("/a")
    assert times[0] <= before.ctime_ms <= times[1] <= before.mtime_ms <= times[2]
    assert (after.ctime_ms, after.mtime_ms) == (before.ctime_ms, before.mtime_ms)


async def test_session_that_does_not_return_ends_after_its_timeout(service: Service) -> None:
    """The next server removes the ephemeral nodes of a client that died while none was serving."""
    victim, other = await service.session(timeout_ms=300), await service.session()
    await victim.create("/mine", ephemeral=True)
    states = states_of(other)
    await service.stop()
    victim.abandon()
    await service.start()
    async with asyncio.timeout(10):
        while await states.get() is not SessionState.CONNECTED:
            continue
        gone = asyncio.Queue[str]()
        if await other.exists("/mine", gone.put_nowait) is not None:
            assert await gone.get() == "/mine"
    assert await other.exists("/mine") is None
    stored = await other.children("/zookeeper/sessions")
    assert stored == [f"{other.session_id:#x}"]


async def test_client_that_is_silent_loses_its_session(service: Service) -> None:
    """Without heartbeats a session expires on the server, and its nodes are removed."""
    victim, other = await service.session(timeout_ms=300), await service.session()
    await victim.create("/mine", ephemeral=True)
    gone = asyncio.Queue[str]()
    await other.exists("/mine", gone.put_nowait)
    victim.abandon()
    async with asyncio.timeout(5):
        assert await gone.get() == "/mine"


async def test_wrong_password_does_not_resume_a_session(service: Service) -> None:
    """A client that guesses the id of a session gets the reply of an expired one."""
    session = await service.session()
    await session.create("/mine", ephemeral=True)
    request = _CONNECT.pack(0, 0, 10_000, session.session_id, 16, bytes(16), False)
    response = await service.send(jute.framed(request))
    _, timeout_ms, session_id = struct.unpack_from(">iiq", response, 4)
    assert (timeout_ms, session_id) == (0, 0)
    assert await session.exists("/mine") is not None


async def test_connection_moves_with_its_session(service: Service) -> None:
    """A client that connects again with the password resumes the session on the new connection."""
    session = await service.session()
    await session.create("/mine", ephemeral=True)
    client = KazooClient(f"127.0.0.1:{service.port}", client_id=session.credentials)
    await asyncio.to_thread(client.start)
    stat = await asyncio.to_thread(client.exists, "/mine")
    assert client.client_id[0] == stat.ephemeralOwner
    await asyncio.to_thread(client.stop)
    await asyncio.to_thread(client.close)
    await session.close()


async def test_closed_session_leaves_nothing(service: Service) -> None:
    """The reply to a close arrives when the session's nodes are removed, its stored state included."""
    session, other = await service.session(), await service.session()
    await session.create("/mine", ephemeral=True)
    await session.close()
    assert await other.exists("/mine") is None
    assert await other.children("/zookeeper/sessions") == [f"{other.session_id:#x}"]


async def test_ephemeral_nodes_of_the_serving_process_end_with_it(service: Service) -> None:
    """Only sessions of other processes outlive the process that holds the tree."""
    await service.tree.session().create("/own", ephemeral=True)
    session = await service.session()
    await session.create("/theirs", ephemeral=True)
    await service.stop()
    await service.start()
    assert {"/own", "/theirs"} & service.tree.nodes.keys() == {"/theirs"}


async def test_requests_are_answered_in_order(service: Service) -> None:
    """Reads that follow writes of the same client see them, however many are under way."""
    session = await service.session()
    await session.create("/count", b"0")
    writes = [session.set("/count", b"%d" % number) for number in range(200)]
    versions = [stat.version for stat in await asyncio.gather(*writes)]
    assert versions == list(range(1, 201))
    assert (await session.get("/count"))[0] == b"199"


async def test_failed_multi_names_the_operation_that_failed(service: Service) -> None:
    """The error is the failing operation's, not the first one's."""
    session = await service.session()
    await session.create("/a")
    with pytest.raises(NodeExists) as failure:
        await session.multi([Check("/a", 0), SetData("/a", b"1"), Create("/a"), Create("/b")])
    assert failure.value.path == "/a"
    assert (await session.get("/a"))[0] == b""


async def test_clients_cannot_change_stored_sessions(service: Service) -> None:
    """ZooKeeper's own nodes can be read but not written."""
    session = await service.session()
    client = KazooClient(f"127.0.0.1:{service.port}")
    await asyncio.to_thread(client.start)
    path = f"/zookeeper/sessions/{session.session_id:#x}"
    for call in (client.delete, client.create):
        with pytest.raises(Exception, match=r"^$|NoAuth"):
            await asyncio.to_thread(call, path)
    assert path in service.tree.nodes
    await asyncio.to_thread(client.stop)
    await asyncio.to_thread(client.close)


@pytest.mark.parametrize(
    "bytes_sent",
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        struct.pack(">i", 3) + b"abc",
        struct.pack(">i", 28) + _CONNECT.pack(0, 0, 10_000, 0, 2**31 - 1, bytes(16), False)[:28],
    ],
    ids=["negative length", "huge length", "short packet", "huge password"],
)
async def test_hostile_bytes_close_their_connection_only(
    service: Service, bytes_sent: bytes
) -> None:
    """A malformed first packet ends its connection; other sessions continue."""
    session = await service.session()
    assert await service.send(bytes_sent) == b""
    await session.create("/still-here")


async def test_malformed_path_is_refused(service: Service) -> None:
    """A path that the tree could not store gets an error, and the connection stays open."""
    connect = jute.framed(_CONNECT.pack(0, 0, 10_000, 0, 16, bytes(16), False))
    paths = [b"", b"relative", b"/double//slash", b"/end/", b"/nul\0", b"/a/../b", b"/"]
    create = b"".join(
        jute.framed(
            struct.pack(">ii", number, jute.OpCode.CREATE)
            + jute.buffer(path)
            + jute.buffer(b"")
            + struct.pack(">ii", 0, 0)
        )
        for number, path in enumerate(paths)
    )
    close = jute.framed(struct.pack(">ii", 99, jute.OpCode.CLOSE_SESSION))
    response = await service.send(connect, create, close)
    position, codes = 4 + struct.unpack_from(">i", response)[0], []
    while position < len(response):
        length, _, _, code = struct.unpack_from(">iiqi", response, position)
        codes.append(code)
        position += 4 + length
    assert codes == [jute.Code.BAD_ARGUMENTS] * len(paths) + [jute.Code.OK]


async def test_scripts_can_ask_whether_the_server_runs(service: Service) -> None:
    """The commands of four letters work without a session."""
    assert await service.send(b"ruok") == b"imok"
    assert b"Mode: standalone" in await service.send(b"srvr")


async def test_request_after_the_loss_of_a_session_is_refused(service: Service) -> None:
    """A client whose session has expired learns it, and cannot write in its name."""
    session = await service.session()
    states = states_of(session)
    service.tree.sessions[session.session_id].expire()
    async with asyncio.timeout(10):
        while await states.get() is not SessionState.LOST:
            continue
    with pytest.raises(SessionLost):
        await session.create("/late", ephemeral=True)
    assert "/late" not in service.tree.nodes


# -- logins ---------------------------------------------------------------------------------------

_LOGIN = Login("ottla", "secret", "a test")
_SASL = struct.Struct(">ii")


def sasl(number: int, token: bytes) -> bytes:
    """Return a packet with a message of SASL."""
    return jute.framed(_SASL.pack(number, jute.OpCode.SASL) + jute.buffer(token))


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Service]:
    """A tree whose clients log in."""
    service = Service(tmp_path, _LOGIN)
    await service.start()
    yield service
    await service.close()


async def test_client_that_logs_in_has_a_session_that_outlives_the_server(guarded: Service) -> None:
    """It logs in again when it reconnects."""
    session = await guarded.session(login=_LOGIN)
    states = states_of(session)
    await session.create("/mine", b"data", ephemeral=True)
    await guarded.stop()
    await guarded.start()
    async with asyncio.timeout(10):
        assert await states.get() is SessionState.SUSPENDED
        assert await states.get() is SessionState.CONNECTED
    data, stat = await session.get("/mine")
    assert (data, stat.ephemeral_owner) == (b"data", session.session_id)


async def test_client_that_does_not_know_the_password_is_disconnected(guarded: Service) -> None:
    """A wrong password, and no login at all: neither gets anything, and no session is stored."""
    wrong = _LOGIN._replace(password="wrong")
    with pytest.raises(EnsembleUnreachable, match="rejects the user 'ottla' of a test"):
        await guarded.session(login=wrong)
    stranger = await guarded.session()
    with pytest.raises(NoAuth):
        await stranger.get("/")
    assert stored_sessions.stored_ids(guarded.tree.nodes) == set()


@pytest.mark.parametrize(
    "request_packet",
    [
        jute.framed(_SASL.pack(1, jute.OpCode.GET_DATA) + jute.text("/") + b"\0"),
        jute.framed(_SASL.pack(1, jute.OpCode.PING)),
        sasl(1, b"") + sasl(2, b'username="ottla",response=""'),
        sasl(1, b"") + sasl(2, b"\xff"),
        sasl(1, b"") + sasl(2, b"") + sasl(3, b""),
    ],
)
async def test_request_before_the_login_is_refused(
    guarded: Service, request_packet: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply has the code of a login that failed, and no data."""
    monkeypatch.setattr("ottla.cluster.zk.tree_server.INTRODUCTION_SECONDS", 0.1)
    connect = jute.framed(_CONNECT.pack(0, 0, 10_000, 0, 16, bytes(16), False))
    response = await guarded.send(connect, request_packet)
    code = struct.pack(">i", jute.Code.AUTH_FAILED)
    assert response.endswith(code)


async def test_client_that_proves_nothing_in_time_is_disconnected(
    guarded: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would keep a descriptor for ever."""
    monkeypatch.setattr("ottla.cluster.zk.tree_server.INTRODUCTION_SECONDS", 0.01)
    assert await guarded.send() == b""
    connect = jute.framed(_CONNECT.pack(0, 0, 10_000, 0, 16, bytes(16), False))
    assert len(await guarded.send(connect)) == 4 + 37
