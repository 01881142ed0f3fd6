"""Producer ids by blocks."""

import asyncio

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.zk.port import BadVersion, ConnectionSuspended, NoNode, Stat
from ottla.cluster.znodes import ProducerIdBlock, ProducerIdBlockNode
from ottla.coordinators.producer_ids import BLOCK_SIZE, ProducerIds


class Tree:
    """The one node that matters, and what may go wrong with it."""

    def __init__(self):
        self.data = None
        self.version = 0
        self.gets = 0
        self.is_down = False
        self.on_get = lambda: None

    async def get(self, path, watch=None):
        self.gets += 1
        await asyncio.sleep(0)
        if self.is_down:
            raise ConnectionSuspended(path)
        if self.data is None:
            raise NoNode(path)
        found = self.data, Stat(1, 1, self.version, 0, 0)
        self.on_get()
        return found

    async def ensure(self, path):
        self.data = b""

    async def set(self, path, data, version=-1):
        if version != self.version:
            raise BadVersion(path)
        self.data, self.version = data, version + 1


@pytest.fixture
def tree():
    return Tree()


async def taken(ids, count):
    found = []
    for _ in range(count):
        reply = ids.next_id()
        found.append(await reply if isinstance(reply, asyncio.Future) else reply)
    return found


def test_ids_follow_each_other_from_zero(world, tree):
    """The first block of a cluster begins with 0, and the node says which one was taken."""

    async def scenario():
        ids = ProducerIds(3, lambda: tree, world.tasks)
        assert await taken(ids, 3) == [0, 1, 2]
        assert ProducerIdBlockNode.decode(tree.data) == ProducerIdBlock(3, 0, BLOCK_SIZE - 1)

    world.loop.run(scenario())


def test_only_the_first_request_waits(world, tree):
    """The next block is there before the current one is used up."""

    async def scenario():
        ids = ProducerIds(1, lambda: tree, world.tasks)
        first = ids.next_id()
        assert isinstance(first, asyncio.Future)
        assert await first == 0
        for expected in range(1, 3 * BLOCK_SIZE):
            found = ids.next_id()
            assert found == expected
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    world.loop.run(scenario())


def test_two_brokers_never_share_an_id(world, tree):
    """A block that another broker took meanwhile is left to it."""

    async def scenario():
        one = ProducerIds(1, lambda: tree, world.tasks)
        two = ProducerIds(2, lambda: tree, world.tasks)
        found = await asyncio.gather(taken(one, 1500), taken(two, 1500))
        assert len(set(found[0]) | set(found[1])) == 3000

    world.loop.run(scenario())


def test_other_broker_between_read_and_write(world, tree):
    """The compare-and-set fails, and the block behind the other broker's is taken."""
    others = ProducerIdBlock(9, 0, 999)

    def interfere():
        tree.on_get = lambda: None
        tree.data, tree.version = ProducerIdBlockNode.encode(others), tree.version + 1

    async def scenario():
        tree.data = b""
        tree.on_get = interfere
        ids = ProducerIds(1, lambda: tree, world.tasks)
        assert await taken(ids, 1) == [1000]

    world.loop.run(scenario())


def test_unreachable_tree_is_a_retriable_error(world, tree):
    """Those who wait are told to try again, and the next one to ask tries again too."""

    async def scenario():
        tree.is_down = True
        ids = ProducerIds(1, lambda: tree, world.tasks)
        with pytest.raises(ApiError) as caught:
            await ids.next_id()
        assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        tree.is_down = False
        assert await taken(ids, 1) == [0]

    world.loop.run(scenario())


def test_many_waiters_get_different_ids(world, tree):
    """More requests than a block holds, all before the first answer."""

    async def scenario():
        ids = ProducerIds(1, lambda: tree, world.tasks)
        waiting = [ids.next_id() for _ in range(2500)]
        waiting[0].cancel()
        found = await asyncio.gather(*waiting[1:])
        assert len(set(found)) == 2499

    world.loop.run(scenario())
