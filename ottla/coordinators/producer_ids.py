"""Producer ids of idempotent producers, unique for the lifetime of the cluster.

Blocks of 1000 ids are allocated from /latest_producer_id_block with one compare-and-set each, so
brokers never share one. Ids that a broker has not used when it stops are lost. Follows Kafka's
ZkProducerIdManager.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.tasks import Tasks
from ottla.cluster.zk.port import BadVersion, Coordination, CoordinationError, NodeExists, NoNode
from ottla.cluster.znodes import ProducerIdBlock, ProducerIdBlockNode
from ottla.coordinators.replies import Reply

_log = logging.getLogger(__name__)

BLOCK_SIZE = 1000
# The next block is requested when this many ids are left.
PREFETCH_AT = 100
_LARGEST_ID = 2**63 - 1


class ProducerIds:
    """The producer ids that this broker has allocated and not used yet. Lives on the broker's loop;
    calls `session` for each block.
    """

    def __init__(self, node_id: int, session: Callable[[], Coordination], tasks: Tasks) -> None:
        self._node_id = node_id
        self._session = session
        self._tasks = tasks
        self._blocks: deque[range] = deque()
        self._waiting: deque[asyncio.Future[int]] = deque()
        self._is_fetching = False

    def next_id(self) -> Reply[int]:
        """Return an id, or a future of it if no block is available.

        The future fails with ApiError COORDINATOR_LOAD_IN_PROGRESS, on which clients retry, while
        the cluster's coordination service is not reachable.
        """
        if self._remaining() <= PREFETCH_AT:
            self._prefetch()
        if self._blocks:
            return self._take()
        waiting: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        return waiting

    def _remaining(self) -> int:
        return sum(len(block) for block in self._blocks)

    def _take(self) -> int:
        block = self._blocks.popleft()
        if len(block) > 1:
            self._blocks.appendleft(block[1:])
        return block[0]

    def _prefetch(self) -> None:
        if not self._is_fetching:
            self._is_fetching = True
            self._tasks.supervise(self._fetch, "fetch producer ids")

    async def _fetch(self) -> None:
        try:
            block = await claim_block(self._session, self._node_id)
        except CoordinationError as error:
            _log.warning("block of producer ids not allocated error=%s", error)
            self._refuse()
            return
        finally:
            self._is_fetching = False
        _log.info("block of producer ids allocated first=%d last=%d", block.first, block.last)
        self._blocks.append(range(block.first, block.last + 1))
        while self._waiting and self._blocks:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(self._take())
        if self._waiting:
            self._prefetch()

    def _refuse(self) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))


async def claim_block(session: Callable[[], Coordination], broker_id: int) -> ProducerIdBlock:
    """Allocate the block after the last one that any broker has allocated; raises
    CoordinationError.
    """
    while True:
        current = session()
        try:
            data, stat = await current.get(ProducerIdBlockNode.PATH)
        except NoNode:
            await current.ensure(ProducerIdBlockNode.PATH)
            continue
        block = _next_block(ProducerIdBlockNode.decode(data), broker_id)
        encoded = ProducerIdBlockNode.encode(block)
        try:
            await current.set(ProducerIdBlockNode.PATH, encoded, stat.version)
        except (BadVersion, NoNode, NodeExists):
            # Another broker was faster.
            continue
        return block


def _next_block(last: ProducerIdBlock | None, broker_id: int) -> ProducerIdBlock:
    first = 0 if last is None else last.last + 1
    assert first <= _LARGEST_ID - BLOCK_SIZE, "the cluster has run out of producer ids"
    return ProducerIdBlock(broker_id, first, first + BLOCK_SIZE - 1)
