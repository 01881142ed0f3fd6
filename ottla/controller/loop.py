"""The controller of one broker: its queue, its coordination session, and its candidacy.

Every broker runs one; the elected one has a `ControllerTerm`. Events are handled one at a time, so
there is no interleaving to reason about. No event is handled while the session is suspended. A lost
session ends the controller's role and the registration, and the broker registers again. Follows
KafkaController and ControllerEventManager.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ottla.base.errors import ApiError, ErrorCode, StorageError
from ottla.cluster.image import NO_CONTROLLER, NO_EPOCH, BrokerImage, ClusterImage
from ottla.cluster.zk.port import ConnectionSuspended, Coordination, SessionLost, SessionState
from ottla.controller import events, state
from ottla.controller.config_writer import ConfigWriter
from ottla.controller.planning import creation
from ottla.controller.planning.elections import ElectionType, TopicPartition
from ottla.controller.planning.isr_changes import IsrRequest, IsrResult
from ottla.controller.planning.requests import (
    ConfigRequest,
    EntityResult,
    PartitionChangeResult,
    PartitionsRequest,
    Reassignment,
    TopicRequest,
    TopicResult,
)
from ottla.controller.succession import Succession
from ottla.controller.term import ControllerTerm, Role
from ottla.controller.term_context import Deliveries, Dependencies

_log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


class Controller:
    """Runs on the broker's loop from `start` to `stop`; `session` is the broker's current one.

    Each callback in `on_new_session` is awaited with a session that replaces a lost one, before the
    broker registers.
    """

    def __init__(
        self, session: Coordination, broker: BrokerImage, dependencies: Dependencies
    ) -> None:
        self.session = session
        self.controller_id = NO_CONTROLLER
        self.on_new_session: list[Callable[[Coordination], Awaitable[None]]] = []
        self._broker = broker
        self._dependencies = dependencies
        self._role = Role()
        self._succession = Succession(
            dependencies, lambda broker, czxid: self._post(events.ControllerGone(broker, czxid))
        )
        self._config_writer = ConfigWriter(lambda: self.session, dependencies)
        self._is_suspended = False
        self._ended: Sequence[BrokerImage] = ()
        self._session_state = SessionState.CONNECTED
        self._queue: asyncio.Queue[events.Event] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._handlers: Mapping[type[Any], Callable[[ControllerTerm, Any], Awaitable[None]]] = {
            events.BrokersChanged: lambda term, _: term.brokers.brokers_changed(),
            events.DirectoriesFailed: lambda term, _: term.brokers.directories_failed(),
            events.NoticeDelivered: lambda term, event: term.delivered(event.delivered),
            events.ChangesExpired: lambda term, event: term.changes_expired(event.paths),
            events.CreateTopics: _create_topics,
            events.DeleteTopics: _delete_topics,
            events.CreatePartitions: _create_partitions,
            events.AlterConfigs: _alter_configs,
            events.ElectLeaders: _elect_leaders,
            events.Reassign: _reassign,
            events.AlterPartitions: _alter_partitions,
            events.ShutDown: _shut_down,
            events.BalanceLeaders: lambda term, _: term.balance_leaders(),
            events.Settle: _settle,
        }

    # -- life -------------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """True if this broker is the controller and may act as such, or will as soon as it has
        completed what it announced.
        """
        return self._role.announced is not None and not self._is_suspended

    @property
    def unclean_elections_count(self) -> int:
        """Leaders elected by this broker that were not in sync."""
        return self._role.unclean_elections_count

    @property
    def broker_epoch(self) -> int:
        """The epoch of the current registration; -1 before `start`, and while it registers again."""
        return self._broker.epoch

    @property
    def image(self) -> ClusterImage:
        """The controller's image; empty if this broker is not the controller."""
        term = self._role.announced
        return ClusterImage() if term is None else term.image

    async def start(self) -> None:
        """Register the broker and become a candidate.

        If it is elected, returns once this broker has its partitions. ConfigError for an id in use.
        """
        await self._register()
        await self._contend()
        # Registered brokers may be dead, so the events that drop them are handled from now on.
        self._task = self._dependencies.tasks.supervise(self._run, "controller")
        term = self._role.term
        for delivery in term.barrier() if term is not None else ():
            await delivery

    async def stop(self) -> None:
        """Resign and stop; waiting callers get NOT_CONTROLLER."""
        self._config_writer.close()
        self._succession.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
            # A task that is cancelled before its first step never ran its own cleanup.
            self._resign()

    async def newest_epoch(self) -> int:
        """Return the epoch of the latest controller in the tree; -1 if it cannot be read now."""
        try:
            return await state.read_controller_epoch(self.session)
        except (ConnectionSuspended, SessionLost, StorageError):
            return -1

    async def report_failed_directory(self) -> None:
        """Make the controller ask this broker which of its replicas are still online."""
        try:
            await state.report_failed_directory(self.session, self._broker.id)
        except (ConnectionSuspended, SessionLost, StorageError) as error:
            # After a reconnect or in a new session the controller queries every replica anyway.
            _log.warning("failed log directory was not reported error=%s", error)

    async def _register(self) -> None:
        self.session.on_session(self._session_changed)
        self._broker = replace(self._broker, epoch=NO_EPOCH)
        now_ms = self._dependencies.clock.time_ms()
        seconds = self._dependencies.registration_seconds
        epoch = await state.register(self.session, self._broker, now_ms, seconds)
        self._broker = replace(self._broker, epoch=epoch)

    def _session_changed(self, session_state: SessionState) -> None:
        # At once, not by the queue: an event under way must not be followed by another.
        self._is_suspended = session_state is not SessionState.CONNECTED
        self._session_state = session_state
        self._post(events.SessionChanged(session_state))

    def _post(self, event: events.Event) -> None:
        self._queue.put_nowait(event)

    # -- the contest ------------------------------------------------------------------------------

    async def _contend(self) -> Deliveries:
        term = self._role.term
        elected = await state.elect(
            self.session,
            self._broker.id,
            self._dependencies.clock.time_ms(),
            lambda _: self._post(events.Elect()),
            None if term is None else term.term,
        )
        if not isinstance(elected, state.Term):
            if term is not None:
                self._succession.role_lost()
            self._resign()
            self.controller_id = elected
            holder = await state.read_holder(self.session)
            if holder is not None and holder.broker.id != self._broker.id:
                self._succession.follow(holder.broker, holder.czxid)
            return []
        if term is not None and term.term == elected:
            return []
        return await self._begin_term(elected, self._ended)

    async def _take_over(self, event: events.ControllerGone) -> None:
        """Take the role from a controller whose process has ended."""
        if not self._succession.may_take_over:
            return
        now_ms = self._dependencies.clock.time_ms()
        term = await state.take_over(self.session, self._broker.id, now_ms, event.czxid)
        if term is not None:
            _log.warning("role of an ended controller taken over epoch=%d", term.epoch)
            await self._begin_term(term, [event.broker])

    async def _begin_term(self, term: state.Term, ended: Sequence[BrokerImage]) -> Deliveries:
        self._resign()
        self._succession.stop()
        current = ControllerTerm(
            self.session, term, self._broker.id, self._dependencies, self._post, ended
        )
        deliveries = await self._role.begin(current)
        self.controller_id = self._broker.id
        return deliveries

    def _resign(self) -> None:
        self._role.resign()
        self.controller_id = NO_CONTROLLER

    # -- the queue --------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while True:
                event = await self._queue.get()
                try:
                    await self._handle(event)
                finally:
                    _refuse(event)
        finally:
            # Stopped, or ended by a bug: requests are refused. After a bug the task is restarted
            # and reads the tree again, for which it follows the session's last state.
            self._resign()
            while not self._queue.empty():
                _refuse(self._queue.get_nowait())
            self._post(events.SessionChanged(self._session_state))

    async def _handle(self, event: events.Event) -> None:
        if isinstance(event, events.Requested) and event.reply.done():
            return
        try:
            await self._perform(event)
        except state.StaleController:
            self._resign()
            self._post(events.Elect())
        except (ConnectionSuspended, SessionLost, StorageError) as error:
            # It is unknown whether the write succeeded: the tree is read again once the session is
            # connected; the session posts that event itself.
            _log.warning("controller stops acting error=%s", error)

    async def _perform(self, event: events.Event) -> None:
        if isinstance(event, events.SessionChanged):
            await self._follow_session(event.state)
        elif isinstance(event, events.Elect):
            if not self._is_suspended:
                await self._contend()
        elif isinstance(event, events.ControllerGone):
            if self._role.term is None and not self._is_suspended:
                await self._take_over(event)
        elif self._role.term is not None and not self._is_suspended:
            await self._handlers[type(event)](self._role.term, event)

    async def _follow_session(self, session_state: SessionState) -> None:
        if session_state is SessionState.LOST:
            await self._join_again()
        elif session_state is SessionState.CONNECTED:
            # The next term must not wait for the sessions of processes that have ended meanwhile.
            term = self._role.term
            self._ended = self._ended if term is None else term.brokers.ended()
            # Resign first, so that the tree is read again even within the same term.
            self._resign()
            await self._contend()
            self._ended = ()

    async def _join_again(self) -> None:
        """Start a new session, register and become a candidate; retry until that succeeds."""
        self._resign()
        while True:
            try:
                self.session = await self._dependencies.connect()
                self._is_suspended = False
                for renew in self.on_new_session:
                    await renew(self.session)
                await self._register()
                await self._contend()
            except (ConnectionSuspended, SessionLost) as error:
                _log.warning("registration failed, trying again error=%s", error)
                await self._dependencies.clock.sleep(RETRY_SECONDS)
            else:
                self._session_state = SessionState.CONNECTED
                return

    # -- asking -----------------------------------------------------------------------------------

    async def create_topics(
        self,
        topics: Sequence[TopicRequest],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> list[TopicResult]:
        """Create topics and wait until their leaders are in place.

        ApiError NOT_CONTROLLER, or REQUEST_TIMED_OUT after `timeout_ms`; work that has started
        continues. A topic that cannot be created has its error in the result.
        """
        event = events.CreateTopics(_future(), tuple(topics), validate_only)
        results: list[TopicResult] = await self._request(event, timeout_ms)
        return results

    async def delete_topics(
        self, topics: Sequence[str], *, timeout_ms: int | None = None
    ) -> list[EntityResult]:
        """Delete topics and wait until they are deleted; errors as in `create_topics`."""
        results: list[EntityResult] = await self._request(
            events.DeleteTopics(_future(), tuple(topics)), timeout_ms
        )
        return results

    async def create_partitions(
        self,
        topics: Sequence[PartitionsRequest],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> list[EntityResult]:
        """Add partitions to topics and wait for their leaders; errors as in `create_topics`."""
        event = events.CreatePartitions(_future(), tuple(topics), validate_only)
        results: list[EntityResult] = await self._request(event, timeout_ms)
        return results

    async def alter_configs(
        self, requests: Sequence[ConfigRequest], *, validate_only: bool = False
    ) -> list[EntityResult]:
        """Change dynamic settings; brokers read them from the tree.

        The controller orders its own changes; another broker writes to the tree itself.
        """
        if not self.is_active:
            return await self._config_writer.alter(requests, validate_only)
        event = events.AlterConfigs(_future(), tuple(requests), validate_only)
        results: list[EntityResult] = await self._request(event, None)
        return results

    async def elect_leaders(
        self,
        kind: ElectionType,
        partitions: Sequence[TopicPartition] | None,
        *,
        timeout_ms: int | None = None,
    ) -> list[PartitionChangeResult]:
        """Elect leaders and wait until brokers know them; errors as in `create_topics`.

        `partitions` None means every partition; those that need no election are then not in the
        result.
        """
        requested = None if partitions is None else tuple(partitions)
        event = events.ElectLeaders(_future(), kind, requested)
        results: list[PartitionChangeResult] = await self._request(event, timeout_ms)
        return results

    async def reassign(
        self,
        requests: Sequence[Reassignment],
        *,
        may_change_factor: bool = True,
        timeout_ms: int | None = None,
    ) -> list[PartitionChangeResult]:
        """Start or cancel reassignments of partitions (KIP-455); results in the order of topics.

        Errors as in `create_topics`. The image shows reassignments in progress.
        """
        event = events.Reassign(_future(), tuple(requests), may_change_factor)
        results: list[PartitionChangeResult] = await self._request(event, timeout_ms)
        return results

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, requests: Sequence[IsrRequest]
    ) -> list[IsrResult]:
        """Store the ISRs that a leader proposes; ApiError NOT_CONTROLLER or STALE_BROKER_EPOCH."""
        event = events.AlterPartitions(_future(), broker_id, broker_epoch, tuple(requests))
        results: list[IsrResult] = await self._request(event, None)
        return results

    async def shut_down(
        self, broker_id: int, broker_epoch: int, *, timeout_ms: int | None = None
    ) -> list[TopicPartition]:
        """Move the leaders of a broker away, and return the partitions that it still leads.

        ApiError NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_NOT_AVAILABLE or REQUEST_TIMED_OUT.
        """
        event = events.ShutDown(_future(), broker_id, broker_epoch)
        remaining: list[TopicPartition] = await self._request(event, timeout_ms)
        return remaining

    def registered(self, broker_id: int, broker_epoch: int) -> bool:
        """Return True if the controller knows this as the current registration of a live broker."""
        broker = self.image.broker(broker_id)
        return broker is not None and broker.epoch == broker_epoch

    async def ensure_topic(
        self, name: str, partitions: int | None = None, config: Mapping[str, str] | None = None
    ) -> bool:
        """Create a topic unless it exists, and wait until its leaders are in place.

        Returns True if this call has created it. An internal topic gets the partition count and the
        settings that the broker options configure. ApiError with the reason if the topic cannot be
        created. If another broker is the controller, the topic is created there.
        """
        options = self._dependencies.options()
        if not self.is_active:
            count = len(self._dependencies.local_image().brokers)
            request = creation.needed_topic(name, options, count, partitions, config)
            return await self._dependencies.create_elsewhere(request)
        if self.image.topic(name) is not None:
            await self._request(events.Settle(_future()), None)
            return False
        count = len(self.image.brokers)
        request = creation.needed_topic(name, options, count, partitions, config)
        (result,) = await self.create_topics([request])
        if result.error is None:
            return True
        if result.error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise result.error
        await self._request(events.Settle(_future()), None)
        return False

    async def _request(self, event: events.Requested, timeout_ms: int | None) -> Any:
        if not self.is_active:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        if timeout_ms is not None and timeout_ms <= 0:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
        self._post(event)
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                reply = await event.reply
                for delivery in reply.deliveries:
                    # Several callers may wait for this delivery: the timeout of one must not cancel
                    # it.
                    await asyncio.shield(delivery)
        except TimeoutError as error:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT) from error
        return reply.value


def _future() -> "asyncio.Future[events.Reply]":
    return asyncio.get_running_loop().create_future()


def _refuse(event: events.Event) -> None:
    """Fail the waiting caller of an event that was not handled."""
    if isinstance(event, events.Requested):
        _fail(event, ApiError(ErrorCode.NOT_CONTROLLER))


def _fail(event: events.Requested, error: ApiError) -> None:
    # The caller may have timed out meanwhile.
    if not event.reply.done():
        event.reply.set_exception(error)
        # Mark the exception as retrieved: a caller that is cancelled in this turn does not do it.
        event.reply.exception()


def _answer(event: events.Requested, reply: events.Reply) -> None:
    # The caller may have timed out meanwhile.
    if not event.reply.done():
        event.reply.set_result(reply)


async def _create_topics(term: ControllerTerm, event: events.CreateTopics) -> None:
    _answer(event, await term.topics.create_topics(event.topics, event.validate_only))


async def _delete_topics(term: ControllerTerm, event: events.DeleteTopics) -> None:
    _answer(event, await term.delete_topics(event.names))


async def _create_partitions(term: ControllerTerm, event: events.CreatePartitions) -> None:
    _answer(event, await term.topics.create_partitions(event.topics, event.validate_only))


async def _alter_configs(term: ControllerTerm, event: events.AlterConfigs) -> None:
    _answer(event, await term.alter_configs(event.requests, event.validate_only))


async def _elect_leaders(term: ControllerTerm, event: events.ElectLeaders) -> None:
    _answer(event, await term.leadership.elect_leaders(event.kind, event.partitions))


async def _reassign(term: ControllerTerm, event: events.Reassign) -> None:
    _answer(event, await term.leadership.reassign(event.requests, event.may_change_factor))


async def _alter_partitions(term: ControllerTerm, event: events.AlterPartitions) -> None:
    await _answer_or_refuse(
        event,
        term.leadership.alter_partitions(event.broker_id, event.broker_epoch, event.requests),
    )


async def _shut_down(term: ControllerTerm, event: events.ShutDown) -> None:
    await _answer_or_refuse(event, term.brokers.shut_down(event.broker_id, event.broker_epoch))


async def _answer_or_refuse(event: events.Requested, work: Awaitable[events.Reply]) -> None:
    """Answer with the result of `work`, or with the error of the whole request."""
    try:
        _answer(event, await work)
    except ApiError as error:
        _fail(event, error.with_traceback(None))


async def _settle(term: ControllerTerm, event: events.Settle) -> None:
    _answer(event, events.Reply(None, term.barrier()))
