"""The controller of one broker: its queue, its coordination session, and its candidacy.

Every broker runs one; the elected one has a `ControllerTerm`. Events are handled one at a time, so
there is no interleaving to reason about. No event is handled while the session is suspended. A lost
session ends the controller's role and the registration, and the broker registers again. Follows
KafkaController and ControllerEventManager.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from ottla.base.errors import ApiError, ErrorCode, StorageError
from ottla.cluster.image import NO_CONTROLLER, BrokerImage, ClusterImage
from ottla.cluster.zk.port import ConnectionSuspended, Coordination, SessionLost, SessionState
from ottla.controller import events, state
from ottla.controller.config_writer import ConfigWriter
from ottla.controller.planning import creation
from ottla.controller.planning.elections import ElectionType, TopicPartition
from ottla.controller.planning.isr_changes import IsrRequest, IsrResult
from ottla.controller.planning.requests import (
    Admit,
    ConfigRequest,
    EntityResult,
    PartitionChangeResult,
    PartitionsRequest,
    Reassignment,
    TopicRequest,
    TopicResult,
    admit_all,
)
from ottla.controller.registration import BrokerRegistration
from ottla.controller.succession import Succession
from ottla.controller.term import ControllerTerm, Role
from ottla.controller.term_context import Deliveries, Dependencies

_log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0

R = TypeVar("R")


class Event(NamedTuple):
    """Work of the current term; it is dropped if this broker is not the controller by then.

    A `reply` is for a waiting caller. A cancelled reply means that the caller timed out, and an
    event that has not started is then dropped.
    """

    work: Callable[[ControllerTerm], Awaitable[Any]]
    reply: "asyncio.Future[events.Reply[Any]] | None" = None


# Work of the candidate, which has perhaps no term: about the session and the controller's role.
_Step = Callable[[], Awaitable[object]]


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
        self._dependencies = dependencies
        check = partial(self._post, self._check_registration)
        self.registration = BrokerRegistration(lambda: self.session, broker, dependencies, check)
        self._role = Role()
        self._succession = Succession(
            dependencies,
            lambda broker, czxid: self._post(partial(self._take_over, broker, czxid)),
        )
        self._config_writer = ConfigWriter(lambda: self.session, dependencies)
        self._is_suspended = False
        self._ended: Sequence[BrokerImage] = ()
        self._session_state = SessionState.CONNECTED
        self._queue: asyncio.Queue[Event | _Step] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

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
    def _broker(self) -> BrokerImage:
        return self.registration.broker

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
        self.session.on_session(self._session_changed)
        await self.registration.register(self._dependencies.registration_seconds)
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

    def unclean_elections_enabled(self, topic: str | None) -> None:
        """Elect leaders for the offline partitions of a topic, None for all, if this broker is the
        controller; unclean.leader.election.enable has been set.
        """
        self._post_to_term(lambda term: term.brokers.unclean_elections_enabled(topic))

    async def _check_registration(self) -> None:
        """Register again if the registration was removed; end if another process has the id."""
        if self._is_suspended or self.registration.is_deposed:
            return
        if not await self.registration.is_current():
            _log.error("registration was removed or replaced broker=%d", self._broker.id)
            self._resign()
            await self._join()

    async def _join(self) -> None:
        """Register in the current session and become a candidate, unless the id is taken."""
        if await self.registration.renew():
            await self._contend()

    def _session_changed(self, session_state: SessionState) -> None:
        # At once, not by the queue: an event under way must not be followed by another.
        self._is_suspended = session_state is not SessionState.CONNECTED
        self._session_state = session_state
        self._post(partial(self._follow_session, session_state))

    def _post(self, step: _Step) -> None:
        self._queue.put_nowait(step)

    def _post_to_term(self, work: Callable[[ControllerTerm], Awaitable[None]]) -> None:
        self._queue.put_nowait(Event(work))

    # -- the contest ------------------------------------------------------------------------------

    async def _contend(self) -> Deliveries:
        term = self._role.term
        elected = await state.elect(
            self.session,
            self._broker.id,
            self._dependencies.clock.time_ms(),
            lambda _: self._post(self._contend_again),
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

    async def _contend_again(self) -> None:
        """Contend for a role that may be free: the node of the controller has changed, or this
        broker has lost the role.
        """
        if not self._is_suspended and not self.registration.is_deposed:
            await self._contend()

    async def _take_over(self, controller: BrokerImage, czxid: int) -> None:
        """Take the role from a controller whose process has ended; `czxid` is its node's."""
        if self._role.term is not None or self._is_suspended or self.registration.is_deposed:
            return
        if not self._succession.may_take_over:
            return
        now_ms = self._dependencies.clock.time_ms()
        term = await state.take_over(self.session, self._broker.id, now_ms, czxid)
        if term is not None:
            _log.warning("role of an ended controller taken over epoch=%d", term.epoch)
            await self._begin_term(term, [controller])

    async def _begin_term(self, term: state.Term, ended: Sequence[BrokerImage]) -> Deliveries:
        self._resign()
        self._succession.stop()
        current = ControllerTerm(
            self.session, term, self._broker.id, self._dependencies, self._post_to_term, ended
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
                    await (self._perform(event) if isinstance(event, Event) else event())
                except state.StaleController:
                    self._resign()
                    self._post(self._contend_again)
                except (ConnectionSuspended, SessionLost, StorageError) as error:
                    # It is unknown whether the write succeeded: the tree is read again once the
                    # session is connected; the session posts that step itself.
                    _log.warning("controller stops acting error=%s", error)
                finally:
                    _refuse(event)
        finally:
            # Stopped, or ended by a bug: requests are refused. After a bug the task is restarted
            # and reads the tree again, for which it follows the session's last state.
            self._resign()
            while not self._queue.empty():
                _refuse(self._queue.get_nowait())
            self._post(partial(self._follow_session, self._session_state))

    async def _perform(self, event: Event) -> None:
        """Do the work of an event in the current term, and reply to its caller."""
        term, reply = self._role.term, event.reply
        if term is None or self._is_suspended or (reply is not None and reply.done()):
            return
        try:
            result = await event.work(term)
        except ApiError as error:
            if reply is None:
                raise
            _fail(reply, error.with_traceback(None))
        else:
            # The caller may have timed out by now.
            if reply is not None and not reply.done():
                reply.set_result(result)

    async def _follow_session(self, session_state: SessionState) -> None:
        if session_state is SessionState.LOST:
            await self._join_again()
        elif session_state is SessionState.CONNECTED:
            # The next term must not wait for the sessions of processes that have ended.
            term = self._role.term
            self._ended = self._ended if term is None else term.brokers.ended()
            # Resign first, so that the tree is read again even within the same term.
            self._resign()
            # The watch may have fired while the session was suspended.
            await self._check_registration()
            if not self.registration.is_deposed:
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
                self.session.on_session(self._session_changed)
                await self._join()
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
        admit: Admit = admit_all,
    ) -> list[TopicResult]:
        """Create topics and wait until their leaders are in place.

        ApiError NOT_CONTROLLER, or REQUEST_TIMED_OUT after `timeout_ms`; work that has started
        continues. A topic that cannot be created has its error in the result.
        """
        return await self._request(
            lambda term: term.topics.create_topics(topics, validate_only, admit), timeout_ms
        )

    async def delete_topics(
        self, topics: Sequence[str], *, timeout_ms: int | None = None
    ) -> list[EntityResult]:
        """Delete topics and wait until they are deleted; errors as in `create_topics`."""
        return await self._request(lambda term: term.delete_topics(topics), timeout_ms)

    async def create_partitions(
        self,
        topics: Sequence[PartitionsRequest],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
        admit: Admit = admit_all,
    ) -> list[EntityResult]:
        """Add partitions to topics and wait for their leaders; errors as in `create_topics`."""
        return await self._request(
            lambda term: term.topics.create_partitions(topics, validate_only, admit), timeout_ms
        )

    async def alter_configs(
        self, requests: Sequence[ConfigRequest], *, validate_only: bool = False
    ) -> list[EntityResult]:
        """Change dynamic settings; brokers read them from the tree.

        The controller orders its own changes; another broker writes to the tree itself.
        """
        if not self.is_active:
            return await self._config_writer.alter(requests, validate_only)
        return await self._request(lambda term: term.alter_configs(requests, validate_only))

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
        return await self._request(
            lambda term: term.leadership.elect_leaders(kind, partitions), timeout_ms
        )

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
        return await self._request(
            lambda term: term.leadership.reassign(requests, may_change_factor), timeout_ms
        )

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, requests: Sequence[IsrRequest]
    ) -> list[IsrResult]:
        """Store the ISRs that a leader proposes; ApiError NOT_CONTROLLER or STALE_BROKER_EPOCH."""
        return await self._request(
            lambda term: term.leadership.alter_partitions(broker_id, broker_epoch, requests)
        )

    async def shut_down(
        self, broker_id: int, broker_epoch: int, *, timeout_ms: int | None = None
    ) -> list[TopicPartition]:
        """Move the leaders of a broker away, and return the partitions that it still leads.

        ApiError NOT_CONTROLLER, STALE_BROKER_EPOCH, BROKER_NOT_AVAILABLE or REQUEST_TIMED_OUT.
        """
        return await self._request(
            lambda term: term.brokers.shut_down(broker_id, broker_epoch), timeout_ms
        )

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
            await self._request(lambda term: term.settle())
            return False
        count = len(self.image.brokers)
        request = creation.needed_topic(name, options, count, partitions, config)
        (result,) = await self.create_topics([request])
        if result.error is None:
            return True
        if result.error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise result.error
        await self._request(lambda term: term.settle())
        return False

    async def _request(
        self,
        work: Callable[[ControllerTerm], Awaitable[events.Reply[R]]],
        timeout_ms: int | None = None,
    ) -> R:
        if not self.is_active:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        if timeout_ms is not None and timeout_ms <= 0:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
        waiting: asyncio.Future[events.Reply[R]] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(Event(work, waiting))
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                reply = await waiting
                for delivery in reply.deliveries:
                    # Several callers may wait for this delivery: the timeout of one must not cancel
                    # it.
                    await asyncio.shield(delivery)
        except TimeoutError as error:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT) from error
        return reply.value


def _refuse(event: Event | _Step) -> None:
    """Fail the waiting caller of an event that was not handled."""
    if isinstance(event, Event) and event.reply is not None:
        _fail(event.reply, ApiError(ErrorCode.NOT_CONTROLLER))


def _fail(reply: "asyncio.Future[Any]", error: ApiError) -> None:
    # The caller may have timed out by now.
    if not reply.done():
        reply.set_exception(error)
        # Mark the exception as retrieved: a caller that is cancelled in this turn does not do it.
        reply.exception()
