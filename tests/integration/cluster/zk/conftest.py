"""The implementations of Coordination that the contract tests run against.

A further one needs one more `CoordinationWorld` and one more line in `_WORLDS`.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from kazoo.client import KazooClient

from ottla.base.clock import RealClock
from ottla.base.files import RealFileSystem
from ottla.base.rng import SystemRng
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import Coordination
from ottla.cluster.zk.tree_server import TreeServer
from ottla.net.listener import RealNet
from tests.compat import zookeeper


class CoordinationWorld(Protocol):
    """One tree, and the other functions that its contract tests need."""

    async def session(self) -> Coordination:
        """Begin a session."""
        ...

    async def expire(self, session: Coordination) -> None:
        """Make the server expire a session, as it does after the session timeout."""
        ...

    async def close(self) -> None:
        """Release all resources."""
        ...


class EmbeddedWorld:
    """The embedded tree."""

    def __init__(self, directory: str | None) -> None:
        self.tree = EmbeddedTree(RealFileSystem(), RealClock(), directory)

    async def session(self) -> Coordination:
        """Begin a session."""
        return self.tree.session()

    async def expire(self, session: Coordination) -> None:
        """Expire a session in the tree."""
        self.tree.sessions[session.session_id].expire()

    async def close(self) -> None:
        """Close the tree."""
        await self.tree.close()


class LiveWorld:
    """A real ZooKeeper, on which every test has its own path."""

    _numbers = itertools.count()

    def __init__(self, server: str) -> None:
        self._place = f"{server}/test-{next(self._numbers)}"
        self._server = server
        self._sessions: list[LiveSession] = []

    async def session(self) -> Coordination:
        """Begin a session."""
        session = await LiveSession.begin(self._place)
        self._sessions.append(session)
        return session

    async def expire(self, session: Coordination) -> None:
        """Expire a session by closing a second connection with its credentials."""
        assert isinstance(session, LiveSession)
        thief = KazooClient(self._server, client_id=session.credentials)
        await asyncio.to_thread(thief.start)
        await asyncio.to_thread(thief.stop)
        await asyncio.to_thread(thief.close)

    async def close(self) -> None:
        """Close all sessions."""
        for session in self._sessions:
            await session.close()


class ServedWorld:
    """A tree on disk that another process would use: kazoo speaks to it over a socket."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._tree: EmbeddedTree | None = None
        self._server: TreeServer | None = None
        self._sessions: list[LiveSession] = []

    async def session(self) -> Coordination:
        """Start a session."""
        if self._server is None:
            self._tree = EmbeddedTree(
                RealFileSystem(), RealClock(), self._directory, is_shared=True
            )
            self._server = TreeServer(self._tree, SystemRng())
            await self._server.open(RealNet(), "127.0.0.1", 0)
        session = await LiveSession.begin(f"127.0.0.1:{self._server.port}/chroot/of/tests")
        self._sessions.append(session)
        return session

    async def expire(self, session: Coordination) -> None:
        """End a session on the server."""
        assert self._tree is not None
        self._tree.sessions[session.session_id].expire()

    async def close(self) -> None:
        """Close the sessions, the server and the tree."""
        for session in self._sessions:
            await session.close()
        if self._server is not None and self._tree is not None:
            await self._server.close()
            await self._tree.close()


_WORLDS: dict[str, Callable[[Path], CoordinationWorld]] = {
    "memory": lambda _: EmbeddedWorld(None),
    "journalled": lambda path: EmbeddedWorld(f"{path}/coordination"),
    "served": lambda path: ServedWorld(f"{path}/coordination"),
}


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield one ZooKeeper for all tests."""
    with zookeeper.running(tmp_path_factory.mktemp("zk") / "server") as server:
        yield server


_ZOOKEEPER = pytest.param("zookeeper", marks=[pytest.mark.compat, pytest.mark.needs("java")])


@pytest.fixture(params=[*_WORLDS, _ZOOKEEPER])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CoordinationWorld]:
    """Yield a tree of each implementation."""
    coordination_world: CoordinationWorld
    if request.param == "zookeeper":
        coordination_world = LiveWorld(request.getfixturevalue("zookeeper_server"))
    else:
        coordination_world = _WORLDS[request.param](tmp_path)
    yield coordination_world
    await coordination_world.close()


@pytest.fixture
async def session(world: CoordinationWorld) -> Coordination:
    """Yield a session with the tree."""
    return await world.session()
