"""Dynamic configuration: settings, and the notification for every broker.

`configs` decides which settings result; this module reads and writes them, and removes
notifications once every broker has read them. Follows ConfigAdminManager and AdminZkClient.
"""

import asyncio
import logging
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Protocol

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.options import Snapshot
from ottla.cluster import names
from ottla.cluster.zk.port import Coordination, Operation, Result
from ottla.cluster.znodes import ConfigNode
from ottla.controller import state
from ottla.controller.planning import configs
from ottla.controller.planning.requests import ConfigRequest

_log = logging.getLogger(__name__)

# Kafka removes a change notification of this age: every live broker has read it by then.
CHANGE_EXPIRY_SECONDS = 15 * 60


class Writer(Protocol):
    """Writes to the tree, with or without the fence of a controller's term."""

    @property
    def session(self) -> Coordination:
        """The session for reading."""
        ...

    async def write(self, operations: Sequence[Operation]) -> list[Result]:
        """Perform all operations or none."""
        ...

    async def remove(self, paths: Iterable[str]) -> None:
        """Delete nodes one by one; a node that does not exist is skipped."""
        ...


class ConfigChanges:
    """Changes the settings of topics, brokers, clients and users.

    `on_expiry` is called with change notifications that every broker has read by then: it calls
    `expire` when writes are possible.
    """

    def __init__(
        self,
        tree: Writer,
        options: Callable[[], Snapshot],
        topics: Callable[[], Container[str]],
        on_expiry: Callable[[Sequence[str]], None],
    ) -> None:
        self._tree = tree
        self._options = options
        self._topics = topics
        self._on_expiry = on_expiry
        self._timers: set[asyncio.TimerHandle] = set()

    async def alter(self, request: ConfigRequest, validate_only: bool) -> None:
        """Store the settings that `request` results in; ApiError if they are not valid."""
        entity_type, entity = request.entity_type, request.entity
        stored = await state.load_config(self._tree.session, entity_type, entity)
        settings = self._altered({} if request.replaces else stored.settings, request)
        if validate_only or settings == stored.settings:
            return
        if stored.version is None:
            # A client below a user is a child of the user's node, which may not exist yet.
            await self._tree.session.ensure(ConfigNode.parent_path(entity_type, entity))
        operations = state.config_operations(entity_type, entity, stored, settings)
        _, change = await self._tree.write(operations)
        assert isinstance(change, str), "a created path was expected"
        self.expire_later([change])
        _log.info("config altered type=%s entity=%s", entity_type, entity)

    def _altered(self, current: dict[str, str], request: ConfigRequest) -> dict[str, str]:
        broker = self._options()
        if request.entity_type == ConfigNode.TOPICS:
            names.validate_topic_name(request.entity)
            if request.entity not in self._topics():
                raise ApiError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"The topic '{request.entity}' does not exist.",
                )
            return configs.alter_topic(current, request.changes, broker)
        if request.entity_type == ConfigNode.BROKERS:
            return configs.alter_broker(current, request.changes, broker)
        return configs.alter_plain(current, request.changes)

    def expire_later(self, paths: Sequence[str]) -> None:
        """Call `on_expiry` for these notifications in 15 minutes."""
        if not paths:
            return
        loop = asyncio.get_running_loop()
        self._timers.add(loop.call_later(CHANGE_EXPIRY_SECONDS, self._on_expiry, paths))

    async def expire(self, paths: Sequence[str]) -> None:
        """Remove change notifications that every broker has read."""
        now = asyncio.get_running_loop().time()
        self._timers = {timer for timer in self._timers if timer.when() > now}
        await self._tree.remove(paths)

    def close(self) -> None:
        """Cancel the timers: the term is over."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
