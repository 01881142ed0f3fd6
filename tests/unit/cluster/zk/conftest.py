"""The implementations of Coordination that the contract tests run against.

Another one, such as a real ensemble, is one more `CoordinationWorld` and one more line in `_WORLDS`.
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Protocol

import pytest

from ottla.base.clock import RealClock
from ottla.base.files import RealFileSystem
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.zk.port import Coordination


class CoordinationWorld(Protocol):
    """One tree, and what its contract tests need besides."""

    async def session(self) -> Coordination:
        """Begin a session."""
        ...

    async def expire(self, session: Coordination) -> None:
        """Have the other side end a session, as it does when it hears nothing of it."""
        ...

    async def close(self) -> None:
        """Put everything away."""
        ...


class EmbeddedWorld:
    """The tree inside the process."""

    def __init__(self, directory: str | None) -> None:
        self.tree = EmbeddedTree(RealFileSystem(), RealClock(), directory)

    async def session(self) -> Coordination:
        """Begin a session."""
        return self.tree.session()

    async def expire(self, session: Coordination) -> None:
        """End a session from the tree's side."""
        self.tree.sessions[session.session_id].expire()

    async def close(self) -> None:
        """Close the tree."""
        await self.tree.close()


_WORLDS: dict[str, Callable[[Path], CoordinationWorld]] = {
    "memory": lambda _: EmbeddedWorld(None),
    "journalled": lambda path: EmbeddedWorld(f"{path}/coordination"),
}


@pytest.fixture(params=_WORLDS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CoordinationWorld]:
    """A tree of each implementation."""
    made = _WORLDS[request.param](tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def session(world: CoordinationWorld) -> Coordination:
    """A session with the tree."""
    return await world.session()
