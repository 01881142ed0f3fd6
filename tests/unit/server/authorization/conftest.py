"""A tree in memory, and stores of brokers that share it."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from ottla.base.clock import RealClock
from ottla.base.files import RealFileSystem
from ottla.base.tasks import Tasks
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.security.acls import (
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from ottla.server.authorization.store import AclStore

TOPIC = ResourcePattern(ResourceType.TOPIC, "t")
PREFIX = ResourcePattern(ResourceType.TRANSACTIONAL_ID, "tx-", PatternType.PREFIXED)


def entry(
    principal: str = "User:ann",
    operation: AclOperation = AclOperation.READ,
    permission: PermissionType = PermissionType.ALLOW,
) -> AccessControlEntry:
    """Return an entry for all hosts."""
    return AccessControlEntry(principal, "*", operation, permission)


class Stores:
    """Creates stores on one tree."""

    def __init__(self) -> None:
        self.tree = EmbeddedTree(RealFileSystem(), RealClock())
        self.session = self.tree.session()
        self.tasks = Tasks()

    async def store(self) -> AclStore:
        """Return a store that has started."""
        store = AclStore(self.tasks, RealClock())
        await store.start(self.tree.session())
        return store


@pytest.fixture
async def stores() -> AsyncIterator[Stores]:
    """Return a tree in memory."""
    created = Stores()
    yield created
    await created.tasks.close()
    await created.tree.close()


async def until(condition: Callable[[], bool]) -> None:
    """Run the other tasks until the condition is true."""
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)
