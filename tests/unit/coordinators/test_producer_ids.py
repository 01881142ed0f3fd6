"""Producer ids, which are allocated in blocks."""

import asyncio

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.zk.port import BadVersion, ConnectionSuspended, NoNode, Stat
from ottla.cluster.znodes import ProducerIdBlock, ProducerIdBlockNode
from ottla.coordinators.producer_ids import BLOCK_SIZE, ProducerIds


class Tree:
    """A ZooKeeper with one node, and the failures that a test injects."""

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
        result = self.data, Stat(1, 1, self.version, 0, 0)
        self.on_get()
        return result

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
    values = []
    for _ in range(count):
        reply = ids.next_id()
        values.append(await reply if isinstance(reply, asyncio.Future) else reply)
    return values


def test_ids_are_consecutive_from_zero(world, tree):
    """The first block of a cluster begins with 0, and the node contains the latest block."""

    async def scenario():
        ids = ProducerIds(3, lambda: tree, world.tasks)
        assert await taken(ids, 3) == [0, 1, 2]
        assert ProducerIdBlockNode.decode(tree.data) == ProducerIdBlock(3, 0, BLOCK_SIZE - 1)

    world.loop.run(scenario())


def test_only_the_first_request_waits(world, tree):
    """The next block is allocated before the current one is used up."""

    async def scenario():
        ids = ProducerIds(1, lambda: tree, world.tasks)
        first = ids.next_id()
        assert isinstance(first, asyncio.Future)
        assert await first == 0
        for expected in range(1, 3 * BLOCK_SIZE):
            producer_id = ids.next_id()
            assert producer_id == expected
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    world.loop.run(scenario())


def test_two_brokers_never_share_an_id(world, tree):
    """A block that another broker has allocated in between is not used."""

    async def scenario():
        one = ProducerIds(1, lambda: tree, world.tasks)
        two = ProducerIds(2, lambda: tree, world.tasks)
        results = await asyncio.gather(taken(one, 1500), taken(two, 1500))
        assert len(set(results[0]) | set(results[1])) == 3000

    world.loop.run(scenario())


def test_another_broker_writes_between_read_and_write(world, tree):
    """The conditional write fails, and the block after the other broker's is allocated."""
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
    """Waiting requests fail with a retriable error, and the next request tries again."""

    async def scenario():
        tree.is_down = True
        ids = ProducerIds(1, lambda: tree, world.tasks)
        with pytest.raises(ApiError) as caught:
            await ids.next_id()
        assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        tree.is_down = False
        assert await taken(ids, 1) == [0]

    world.loop.run(scenario())


def test_many_waiting_requests_get_different_ids(world, tree):
    """More requests than a block has ids arrive before the first response."""

    async def scenario():
        ids = ProducerIds(1, lambda: tree, world.tasks)
        waiting = [ids.next_id() for _ in range(2500)]
        waiting[0].cancel()
        results = await asyncio.gather(*waiting[1:])
        assert len(set(results)) == 2499

    world.loop.run(scenario())
