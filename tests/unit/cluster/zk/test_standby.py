"""Processes of one machine that stand by for one another to serve the same tree."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError, StorageError
from ottla.base.files import FileSystem, RealFileSystem, RealLock
from ottla.base.rng import SystemRng
from ottla.cluster.zk import tree_login
from ottla.cluster.zk.journal import JOURNAL_PREFIX
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import SessionState
from ottla.cluster.zk.standby import StandbyServer
from ottla.net.listener import RealNet
from ottla.net.port import Net
from tests.compat import java


class Machine:
    """A directory and an address, and the servers that tests start for them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (self.port,) = java.free_ports(1)
        self.servers: list[StandbyServer] = []

    async def start(self, files: FileSystem | None = None, net: Net | None = None) -> StandbyServer:
        """Start what one process of the machine runs."""
        server = StandbyServer(
            str(self.folder),
            "127.0.0.1",
            self.port,
            files=files or RealFileSystem(),
            clock=RealClock(),
        )
        self.servers.append(server)
        await server.start(net or RealNet(), SystemRng())
        return server

    async def session(self) -> LiveSession:
        """Start a session with whichever process serves."""
        login = tree_login.read(RealFileSystem(), str(self.folder))
        return await LiveSession.begin(f"127.0.0.1:{self.port}", login=login)


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    """One machine."""
    machine = Machine(tmp_path / "tree")
    yield machine
    for server in machine.servers:
        await server.stop()


async def test_first_process_serves_and_the_others_stand_by(machine: Machine) -> None:
    """Exactly one process has the tree open."""
    servers = [await machine.start() for _ in range(3)]
    assert [server.is_serving for server in servers] == [True, False, False]


async def test_another_process_takes_over_with_all_sessions(machine: Machine) -> None:
    """When the serving process stops, a session continues with its ephemeral node on the next one."""
    first, second = await machine.start(), await machine.start()
    session = await machine.session()
    states: asyncio.Queue[SessionState] = asyncio.Queue()
    session.on_session(states.put_nowait)
    await session.create("/mine", b"data", ephemeral=True)
    await first.stop()
    async with asyncio.timeout(10):
        assert await states.get() is SessionState.SUSPENDED
        assert await states.get() is SessionState.CONNECTED
    assert second.is_serving
    data, stat = await session.get("/mine")
    assert (data, stat.ephemeral_owner) == (b"data", session.session_id)
    await session.close()


async def test_address_in_use_by_another_program_is_named(machine: Machine) -> None:
    """The error names option and address, and the directory is released."""
    foreign = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", machine.port)
    with pytest.raises(ConfigError, match=rf"coordination.listener.*127.0.0.1:{machine.port}"):
        await machine.start()
    foreign.close()
    await foreign.wait_closed()
    assert (await machine.start()).is_serving


async def test_damaged_tree_is_reported_to_the_process_that_takes_over(machine: Machine) -> None:
    """A standby process that cannot open the tree reports the StorageError, as at a start."""
    first, second = await machine.start(), await machine.start()
    failed: asyncio.Future[StorageError] = asyncio.get_running_loop().create_future()
    second.on_failure = failed.set_result
    session = await machine.session()
    await session.create("/a")
    await session.close()
    journal = machine.folder / f"{JOURNAL_PREFIX}0"
    with journal.open("r+b") as file:
        file.seek(0)
        file.write(os.urandom(4))
    await first.stop()
    async with asyncio.timeout(10):
        assert "damaged" in str(await failed)
    assert not second.is_serving


class Failing(RealFileSystem, RealNet):
    """Files and network of which one operation fails a number of times, then works."""

    def __init__(self, operation: str, error: Exception, times: int = 2) -> None:
        super().__init__()
        self.operation, self.error, self.left = operation, error, times + 1
        self.failed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def _enter(self, operation: str) -> None:
        if operation == self.operation and self.left:
            self.left -= 1
            if not self.left:
                self._loop.call_soon_threadsafe(self.failed.set)
            raise self.error

    def lock(self, path: str) -> RealLock:
        """Lock a file, or fail."""
        lock = super().lock(path)
        try:
            self._enter("lock")
        except Exception:
            lock.release()
            raise
        return lock

    def read(self, path: str) -> bytes:
        """Read a file, or fail."""
        self._enter("read")
        return super().read(path)

    async def listen(self, *arguments: Any) -> Any:
        """Accept connections, or fail."""
        self._enter("listen")
        return await super().listen(*arguments)


@pytest.mark.parametrize("operation", ["lock", "read", "listen"])
async def test_standby_without_a_free_descriptor_tries_again(
    machine: Machine, operation: str
) -> None:
    """A lack of descriptors is no failure of the tree: the process takes over when there are some."""
    first = await machine.start()
    failing = Failing(operation, OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
    failures: list[StorageError] = []
    second = await machine.start(failing, failing)
    second.on_failure = failures.append
    await first.stop()
    async with asyncio.timeout(10):
        await failing.failed.wait()
        await (await machine.session()).close()
    assert failures == []
    assert second.is_serving


async def test_unexpected_exception_of_the_standby_is_reported_and_it_continues(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The standby is supervised: it is restarted, and its failure is visible in its tasks."""
    monkeypatch.setattr("ottla.base.tasks.RESTART_SECONDS", 0.001)
    first = await machine.start()
    failing = Failing("listen", LookupError("a bug"), times=0)
    second = await machine.start(net=failing)
    await first.stop()
    async with asyncio.timeout(10):
        await failing.failed.wait()
        await (await machine.session()).close()
    assert second.is_serving
    counts = [tasks.failure_counts() for tasks in second.tasks]
    assert {"coordination standby": 1, "once": 0} in counts


async def test_processes_of_one_machine_have_one_login(machine: Machine) -> None:
    """The first one creates it, and only the user of the brokers can read it."""
    await machine.start()
    path = machine.folder / tree_login.FILE
    text = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    login = tree_login.read(RealFileSystem(), str(machine.folder))
    assert len(login.password) == 64
    await machine.servers[0].stop()
    await machine.start()
    assert path.read_text() == text


async def test_login_is_awaited_until_the_process_that_serves_has_created_it(
    tmp_path: Path,
) -> None:
    """A broker with another directory gets a sentence instead of a session."""
    files, clock, folder = RealFileSystem(), SteppingClock(), str(tmp_path)
    with pytest.raises(ConfigError, match=r"all brokers of a coordination\.listener need"):
        await tree_login.wait_for(files, clock, folder, 1_000)
    assert clock.now >= 1
    clock.on_sleep = lambda: tree_login.ensure(files, folder, SystemRng())
    login = await tree_login.wait_for(files, clock, folder, 1_000)
    assert login == tree_login.read(files, folder)


class SteppingClock(RealClock):
    """Virtual time: a sleep is over at once."""

    def __init__(self) -> None:
        self.now = 0.0
        self.on_sleep: Callable[[], object] = lambda: None

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_sleep()


@pytest.mark.parametrize("text", ["", "Server { a required; };", "Client { a required; };"])
def test_login_that_cannot_be_read_is_an_error(tmp_path: Path, text: str) -> None:
    """The error has the path."""
    (tmp_path / tree_login.FILE).write_text(text)
    with pytest.raises(ConfigError, match=tree_login.FILE):
        tree_login.read(RealFileSystem(), str(tmp_path))
