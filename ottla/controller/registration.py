"""The registration of this broker under its id.

`register` waits for the end of another session, and replaces only a registration of an earlier
process with the same log directories. `BrokerRegistration` watches the broker's own: if another
program removes it, the broker registers again, and if another process takes the id, it ends.
Follows KafkaZkClient.registerBroker and KafkaServer.createBrokerInfo.
"""

import asyncio
import logging
from collections.abc import Callable, Container
from dataclasses import replace
from typing import NamedTuple

from ottla.base.errors import ConfigError, StorageError
from ottla.cluster.image import NO_EPOCH, BrokerImage
from ottla.cluster.names import same_folders
from ottla.cluster.zk.port import (
    BadVersion,
    ConnectionSuspended,
    Coordination,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    SessionLost,
    Stat,
    Watch,
)
from ottla.cluster.znodes import (
    PERSISTENT_PATHS,
    BrokerIdNode,
    BrokerIdsNode,
    ControllerNode,
    TopicNode,
    TopicsNode,
)
from ottla.controller import state
from ottla.controller.planning import registrations
from ottla.controller.planning.registrations import IdInUse, Incarnation, Verdict
from ottla.controller.term_context import Dependencies

_log = logging.getLogger(__name__)


class BrokerRegistration:
    """The registration of this broker; `session` returns its current session.

    `changed` is called when the registration may have been removed or replaced.
    """

    def __init__(
        self,
        session: Callable[[], Coordination],
        broker: BrokerImage,
        dependencies: Dependencies,
        changed: Callable[[], None],
    ) -> None:
        self.broker = broker
        """This broker, with the epoch of its registration; -1 while it is not registered."""
        self.is_deposed = False
        """True if another process has taken the id: this one ends."""
        self._session = session
        self._dependencies = dependencies
        # One object, so that the session does not collect watches.
        self._watch: Watch = lambda _: changed()

    async def register(self, wait_seconds: float = 0.0) -> None:
        """Register the broker in the current session; IdInUse as `register` raises it."""
        session, record = self._session(), self._dependencies.registrations
        now_ms = self._dependencies.clock.time_ms()
        self.broker = replace(self.broker, epoch=NO_EPOCH)
        # First: if this process is killed now, the next one has to replace the registration.
        await record.record(Incarnation(session.session_id, now_ms))
        epoch = await register(session, self.broker, now_ms, wait_seconds, record.recorded())
        self.broker = replace(self.broker, epoch=epoch)
        if not await self.is_current():
            self._watch(BrokerIdNode.path(self.broker.id))

    async def is_current(self) -> bool:
        """Return True if the tree has the registration of this process; watch it from now on."""
        holder = await read_registration(self._session(), self.broker.id, self._watch)
        return holder is not None and holder.broker.epoch == self.broker.epoch

    async def renew(self) -> bool:
        """Register again; return False if another process has the id."""
        try:
            await self.register()
        except IdInUse as error:
            self.is_deposed = True
            self._dependencies.on_deposed(registrations.deposed(error.own, error.holder))
        return not self.is_deposed

    async def newest_epoch(self) -> int:
        """Return the epoch of the latest controller in the tree; -1 if it cannot be read now."""
        try:
            return await state.read_controller_epoch(self._session())
        except (ConnectionSuspended, SessionLost, StorageError):
            return -1

    async def report_failed_directory(self) -> None:
        """Make the controller ask this broker which of its replicas are still online."""
        try:
            await state.report_failed_directory(self._session(), self.broker.id)
        except (ConnectionSuspended, SessionLost, StorageError) as error:
            # After a reconnect or in a new session the controller queries every replica anyway.
            _log.warning("failed log directory was not reported error=%s", error)


async def refuse_shared_addresses(session: Coordination, broker: BrokerImage) -> None:
    """Raise ConfigError if another broker advertises one of this broker's addresses.

    Clients would reach only one of the two. Follows KafkaServer.createBrokerInfo; as there, brokers
    that start at the same moment may miss each other.
    """
    own = {(endpoint.host, endpoint.port) for endpoint in broker.every_endpoint()}
    try:
        names = await session.children(BrokerIdsNode.PATH)
    except NoNode:
        # The first broker of a new cluster.
        return
    for other in sorted(map(int, names)):
        try:
            data, stat = await session.get(BrokerIdNode.path(other))
        except NoNode:
            continue
        endpoints = BrokerIdNode.decode(other, data, stat.czxid).every_endpoint()
        shared = {(endpoint.host, endpoint.port) for endpoint in endpoints} & own
        if other != broker.id and shared:
            written = ",".join(f"{host}:{port}" for host, port in sorted(shared))
            raise ConfigError(
                f"Configured end points {written} in advertised listeners are already registered by "
                f"broker {other}: give each broker its own advertised.listeners, or wait until the "
                f"session of broker {other} has ended"
            )


async def refuse_shared_folders(session: Coordination, broker_id: int) -> None:
    """Raise ConfigError if two topics of a broker whose disk ignores case differ only in case."""
    try:
        topics = await session.children(TopicsNode.PATH)
    except NoNode:
        return
    for pair in same_folders(topics):
        if all([await _is_replica(session, topic, broker_id) for topic in pair]):
            raise ConfigError(
                f"The topics '{pair[0]}' and '{pair[1]}' differ only in case, and a log directory is "
                f"on a disk that ignores case: both would be in the same folder. Choose directories "
                f"in log.dirs on a disk that distinguishes case."
            )


async def _is_replica(session: Coordination, topic: str, broker_id: int) -> bool:
    try:
        data, _ = await session.get(TopicNode.path(topic))
    except NoNode:
        return False
    assignment = TopicNode.decode(topic, data).assignment
    return any(broker_id in row.replicas for row in assignment.values())


async def register(
    session: Coordination,
    broker: BrokerImage,
    now_ms: int,
    wait_seconds: float = 0.0,
    recorded: Container[tuple[int, int]] = (),
) -> int:
    """Register a broker and return its epoch; ConfigError if its id is in use.

    A registration among the `recorded` ones is replaced: its process has ended. Any other may be of
    a process whose session has not expired: this call waits up to `wait_seconds` for its end.
    """
    for path in PERSISTENT_PATHS:
        await session.ensure(path)
    path, content = BrokerIdNode.path(broker.id), BrokerIdNode.encode(broker, now_ms)
    try:
        await session.create(path, content, ephemeral=True)
    except NodeExists:
        await _replace_registration(session, broker, content, wait_seconds, recorded)
    _, stat = await session.get(path)
    return stat.czxid


class Registered(NamedTuple):
    """A registration: the broker as it describes itself, and the session that holds it."""

    broker: BrokerImage
    stat: Stat

    @property
    def incarnation(self) -> Incarnation:
        """The registration's session and time."""
        return Incarnation(self.stat.ephemeral_owner, self.broker.registered_ms)


async def read_registration(
    session: Coordination, broker_id: int, watch: Watch
) -> Registered | None:
    """Return the registration of an id, or None; `watch` fires when it changes, ends or begins."""
    path = BrokerIdNode.path(broker_id)
    while await session.exists(path, watch) is not None:
        try:
            data, stat = await session.get(path)
        except NoNode:
            # `watch` has fired; the next one notices the next registration.
            continue
        return Registered(BrokerIdNode.decode(broker_id, data, stat.czxid), stat)
    return None


async def _leftovers(session: Coordination, owner: int) -> list[Operation]:
    """Return the operations that remove the controller's node of a session whose process has
    ended.
    """
    stat = await session.exists(ControllerNode.PATH)
    if stat is None or stat.ephemeral_owner != owner:
        return []
    return [Delete(ControllerNode.PATH, stat.version)]


async def _replace_registration(
    session: Coordination,
    broker: BrokerImage,
    content: bytes,
    wait_seconds: float,
    recorded: Container[tuple[int, int]],
) -> None:
    path = BrokerIdNode.path(broker.id)
    create = Create(path, content, ephemeral=True)
    deadline = asyncio.get_running_loop().time() + wait_seconds
    while True:
        changed = asyncio.Event()
        holder = await read_registration(
            session,
            broker.id,
            lambda _, changed=changed: changed.set(),  # type: ignore[misc]
        )
        try:
            if holder is None:
                await session.multi([create])
                return
            whose = registrations.verdict(holder.incarnation, session.session_id, recorded)
            if whose is Verdict.OWN:
                return
            if whose is Verdict.FORMER:
                _log.info(
                    "registration replaced broker=%d epoch=%d", broker.id, holder.broker.epoch
                )
                leftovers = await _leftovers(session, holder.stat.ephemeral_owner)
                await session.multi([*leftovers, Delete(path, holder.stat.version), create])
                return
        except (NodeExists, NoNode, BadVersion):
            # The registration has changed since it was read.
            continue
        error = IdInUse(broker, holder.broker)
        if wait_seconds <= 0:
            raise error
        _log.warning("waiting for the end of the other session seconds=%.0f reason=%s",
                     wait_seconds, error)  # fmt: skip
        try:
            async with asyncio.timeout_at(deadline):
                await changed.wait()
        except TimeoutError:
            raise error from None
