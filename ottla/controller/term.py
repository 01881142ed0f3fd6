"""One controller term: the image of the cluster, and how each event changes it.

A ControllerTerm is created when a broker is elected and dropped when it loses the role, so no state
outlives a term. Each event is handled in three steps: the pure modules plan, `state` writes, the outbox
sends notices to brokers. If a write finds that the tree differs from the image, the term reads the whole
tree again and plans again. Follows KafkaController and ControllerContext.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.options import Snapshot
from ottla.base.rng import Rng
from ottla.base.slices import Slices
from ottla.base.tasks import Tasks
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.cluster.zk.port import (
    BadVersion,
    Coordination,
    Create,
    NodeExists,
    NoNode,
    NotEmpty,
)
from ottla.cluster.znodes import ConfigNode, DeleteTopicsNode
from ottla.controller import events, state
from ottla.controller.config_changes import ConfigChanges
from ottla.controller.outbox import Outbox
from ottla.controller.planning import creation, elections, planner, reassignment
from ottla.controller.planning.notices import BrokerPort, Delivered, Fence, Notice
from ottla.controller.planning.requests import (
    ConfigRequest,
    Outcome,
    PartitionOutcome,
    PartitionsRequest,
    Reassignment,
    TopicRequest,
    TopicResult,
)
from ottla.controller.topic_deletions import TopicDeletions
from ottla.controller.tree_writer import TreeWriter

_log = logging.getLogger(__name__)
# Partitions per log line.
_NAMED_MAX = 20

T = TypeVar("T")

ATTEMPTS = 3
# Kafka's age at which a change notification has been seen by every broker that lives.
CHANGE_EXPIRY_SECONDS = 15 * 60
_CONFLICTS = (BadVersion, NodeExists, NoNode, NotEmpty)

Deliveries = list["asyncio.Future[None]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """The dependencies of a controller: ports, configuration, connections to brokers and to the tree.

    `owns_addresses`: no other process can listen at the addresses that the broker registers.
    """

    clock: Clock
    rng: Rng
    tasks: Tasks
    options: Callable[[], Snapshot]
    topic_options: Callable[[str], Snapshot]
    port_of: Callable[[BrokerImage], BrokerPort]
    connect: Callable[[], Awaitable[Coordination]]
    owns_addresses: bool = False


class ControllerTerm:
    """The controller role during one term; only the controller's loop calls its methods."""

    def __init__(
        self,
        session: Coordination,
        term: state.Term,
        broker_id: int,
        dependencies: Dependencies,
        post: Callable[[events.Event], None],
    ) -> None:
        self.term = term
        self.image = ClusterImage()
        self.unclean_elections_count = 0
        self._session = session
        self._broker_id = broker_id
        self._dependencies = dependencies
        self._post = post
        self._outbox = Outbox(dependencies.tasks, dependencies.clock, dependencies.port_of)
        self._tree = TreeWriter(session, term)
        self._deletions = TopicDeletions(
            self._outbox, lambda: self.image.brokers, self._remove_nodes_retried
        )
        self._configs = ConfigChanges(
            self._tree, dependencies.options, lambda: self.image.topics, post
        )

    # -- taking and leaving the role --------------------------------------------------------------

    async def enter(self, restarted: Iterable[int] = ()) -> Deliveries:
        """Load the tree, elect leaders where needed, and send the complete image to every broker.

        `restarted` brokers have registered again since the partition states were written, so new
        leaders are elected for their partitions, in a new leader epoch.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._enter(restarted)
            except _CONFLICTS as error:
                _log.warning("tree changed while it was read, reading it again error=%s", error)
        return await self._enter(restarted)

    async def _enter(self, restarted: Iterable[int]) -> Deliveries:
        live = await state.load_brokers(self._session, self._watch_brokers)
        topics = await state.load_topics(self._session)
        doomed = await state.load_deletions(self._session)
        loaded = ClusterImage(controller_id=self._broker_id, controller_epoch=self.term.epoch)
        loaded = loaded.with_brokers(
            broker for broker in live.values() if broker.id not in set(restarted)
        ).with_topics(topic for topic in topics.values() if topic.name not in doomed)
        self.image = loaded
        await self._write_states(planner.plan_brokers(loaded, live, self._is_unclean))
        self._outbox.close()
        for broker in live.values():
            self._open_lane(broker)
        deliveries = self._send(ClusterImage(), came=live)
        _log.info(
            "controller elected epoch=%d brokers=%d topics=%d deletions=%d",
            self.term.epoch, len(live), len(self.image.topics), len(doomed),
        )  # fmt: skip
        await self._deletions.resume(doomed, topics)
        self._configs.expire_later(await state.load_config_changes(self._session))
        # enter() sends every broker all of its replicas anyway.
        await self._tree.remove(
            await state.load_failed_directories(self._session, self._watch_failures)
        )
        return deliveries

    def leave(self) -> None:
        """Close the outbox; callers that wait for a deletion get NOT_CONTROLLER."""
        self._outbox.close()
        self._configs.close()
        self._deletions.abandon()

    # -- writes and notices of every event --------------------------------------------------------

    async def _retried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Perform a plan; if the tree differs from the image, load the tree and plan again."""
        for _ in range(ATTEMPTS - 1):
            try:
                return await attempt()
            except _CONFLICTS as error:
                _log.warning("tree differs from the image, reading it again error=%s", error)
                await self.enter()
        return await attempt()

    def _send(self, before: ClusterImage, came: Iterable[int] = ()) -> Deliveries:
        return self._outbox.send(planner.plan_notices(before, self.image, set(came)))

    async def _write_states(self, after: ClusterImage) -> None:
        """Write the partition states in which `after` differs, and make it the image."""
        for write in planner.write_states(self.image, after, self.term.epoch):
            for parent in write.parents:
                await self._session.ensure(parent)
            if write.operations:
                await self._tree.write(write.operations)
            after = after.with_topics(write.topics)
        log_elections(self.image, after)
        self.unclean_elections_count += elections.count_unclean(self.image, after)
        self.image = after

    def _is_unclean(self, topic: str) -> bool:
        return self._dependencies.topic_options(topic).boolean("unclean.leader.election.enable")

    def _environment(self) -> creation.Environment:
        return creation.Environment(
            image=self.image, options=self._dependencies.options(), rng=self._dependencies.rng
        )

    def _watch_brokers(self, _path: str) -> None:
        self._post(events.BrokersChanged())

    def _watch_failures(self, _path: str) -> None:
        self._post(events.DirectoriesFailed())

    def _open_lane(self, broker: BrokerImage) -> None:
        fence = Fence(self._broker_id, self.term.epoch, broker.epoch)
        self._outbox.open(broker, fence, self._delivered)

    def _delivered(self, delivered: Delivered) -> None:
        if delivered.errors or delivered.notice.delete:
            self._post(events.NoticeDelivered(delivered))

    def barrier(self) -> Deliveries:
        """Return futures that complete once this broker has received every decision made so far."""
        return self._outbox.send([Notice(broker_id=self._broker_id)])

    # -- brokers ----------------------------------------------------------------------------------

    async def brokers_changed(self) -> None:
        """Elect leaders for the partitions of brokers that came, left or restarted."""
        live = await state.load_brokers(self._session, self._watch_brokers)
        change = planner.compare_brokers(self.image.brokers, live)
        if not (change.came or change.gone):
            return
        _log.info("brokers changed came=%s gone=%s", sorted(change.came), sorted(change.gone))
        before = self.image
        await self._write_states(planner.plan_brokers(before, live, self._is_unclean))
        for broker_id in change.gone:
            self._outbox.close_lane(broker_id)
        for broker_id in change.came:
            self._open_lane(live[broker_id])
        self._send(before, change.came)
        self._deletions.brokers_changed(change)
        await self._deletions.proceed()

    async def directories_failed(self) -> None:
        """Ask the brokers with failed log directories which replicas are offline; see `delivered`."""
        failures = await state.load_failed_directories(self._session, self._watch_failures)
        self._outbox.send(
            Notice(broker_id=broker_id, leaders=planner.states_of(broker_id, self.image))
            for broker_id in sorted(set(failures.values()) & self.image.brokers.keys())
        )
        await self._tree.remove(failures)

    async def _take_offline(
        self, broker_id: int, failed: Sequence[elections.TopicPartition]
    ) -> None:
        before = self.image
        after = planner.plan_failures(before, broker_id, failed, self._is_unclean)
        if after is not before:
            await self._write_states(after)
            _log.error("replicas offline broker=%d count=%d", broker_id, len(failed))
            self._send(before)

    # -- new topics and partitions ----------------------------------------------------------------

    async def create_topics(
        self, requests: Sequence[TopicRequest], validate_only: bool
    ) -> events.Reply:
        """Create topics one by one; the reply has a TopicResult for each."""
        before = self.image
        results = []
        for request in requests:
            attempt = partial(self._create_topic, request, validate_only)
            try:
                results.append(await self._retried(attempt))
            except ApiError as error:
                results.append(TopicResult(request.name, error))
        return events.Reply(results, self._send(before) if self.image is not before else ())

    async def _create_topic(self, request: TopicRequest, validate_only: bool) -> TopicResult:
        existing = self.image.topics.keys() | set(self._deletions.names())
        placed = creation.place_topic(request, existing, self._environment())
        partitions = await self._make(placed)
        new = creation.new_topic(request, partitions, self._environment())
        topic = new.topic
        if not validate_only:
            await self._yield_to_loop(topic)
            await self._write_topic(new)
            await self._yield_to_loop(topic)
            self.image = self.image.with_topics([topic])
            _log.info("topic created name=%s partitions=%d", topic.name, len(topic.partitions))
        return TopicResult(
            topic.name,
            None,
            topic.topic_id,
            len(topic.partitions),
            new.replication_factor,
            new.config,
        )

    async def _write_topic(self, new: creation.NewTopic) -> None:
        write = creation.write_topic(new, self.term.epoch)
        await self._yield_to_loop(new.topic)
        try:
            await self._tree.write(write.operations)
        except NodeExists as error:
            if error.path != ConfigNode.path(ConfigNode.TOPICS, new.topic.name):
                raise
            write = creation.write_topic(new, self.term.epoch, config_exists=True)
            await self._tree.write(write.operations)
        await self._write_rest(new.topic, 0)

    async def _make(self, placed: creation.Placement) -> list[PartitionImage]:
        """Create new partitions, in slices."""
        made: list[PartitionImage] = []
        slices = Slices(self._dependencies.clock)
        for part in placed.parts():
            made += part
            await slices.pause()
        return made

    async def _yield_to_loop(self, topic: TopicImage) -> None:
        """Yield to the event loop between two long steps for a topic of many partitions."""
        if len(topic.partitions) > creation.PARTITIONS_AT_ONCE:
            await self._dependencies.clock.sleep(0)

    async def _write_rest(self, topic: TopicImage, had: int) -> None:
        for write in creation.write_rest(topic, had + creation.PARTITIONS_AT_ONCE, self.term.epoch):
            await self._tree.write(write.operations)

    async def create_partitions(
        self, requests: Sequence[PartitionsRequest], validate_only: bool
    ) -> events.Reply:
        """Add partitions to topics; the reply has an Outcome for each."""
        before = self.image
        outcomes = []
        for request in requests:
            attempt = partial(self._create_partitions, request, validate_only)
            outcomes.append(await self._outcome(request.name, attempt))
        return events.Reply(outcomes, self._send(before) if self.image is not before else ())

    async def _create_partitions(self, request: PartitionsRequest, validate_only: bool) -> None:
        former = self.image.topic(request.name)
        if former is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        placed = creation.place_partitions(request, former, self._environment())
        topic = former.with_partitions(await self._make(placed))
        if validate_only:
            return
        await self._yield_to_loop(topic)
        write = creation.write_partitions(former, topic, self.term.epoch)
        await self._yield_to_loop(topic)
        await self._tree.write(write.operations)
        await self._write_rest(topic, len(former.partitions))
        self.image = self.image.with_topics(write.topics)
        _log.info("partitions created topic=%s now=%d", topic.name, len(topic.partitions))

    async def _outcome(self, name: str, attempt: Callable[[], Awaitable[None]]) -> Outcome:
        try:
            await self._retried(attempt)
        except ApiError as error:
            return Outcome(name, error)
        return Outcome(name, None)

    # -- elections --------------------------------------------------------------------------------

    async def elect_leaders(
        self,
        kind: elections.ElectionType,
        partitions: Sequence[elections.TopicPartition] | None,
    ) -> events.Reply:
        """Elect leaders; the reply has a PartitionOutcome for each partition.

        `partitions` None means every partition that needs an election.
        """
        before = self.image
        results = await self._retried(partial(self._elect_leaders, kind, partitions))
        return events.Reply(results, self._send(before) if self.image is not before else ())

    async def _elect_leaders(
        self,
        kind: elections.ElectionType,
        partitions: Sequence[elections.TopicPartition] | None,
    ) -> list[PartitionOutcome]:
        requested = elections.in_need(self.image, kind) if partitions is None else partitions
        after, outcomes = elections.plan_elections(self.image, kind, requested)
        if after is not self.image:
            await self._write_states(after)
        return outcomes

    # -- reassignment -----------------------------------------------------------------------------

    async def reassign(
        self, partitions: Sequence[Reassignment], may_change_factor: bool
    ) -> events.Reply:
        """Start or cancel reassignments; the reply has a PartitionOutcome for each, by topic."""
        before = self.image
        by_topic: dict[str, list[Reassignment]] = {}
        for request in partitions:
            by_topic.setdefault(request.topic, []).append(request)
        outcomes: list[PartitionOutcome] = []
        for requests in by_topic.values():
            for start in range(0, len(requests), reassignment.MOVES_MAX):
                some = requests[start : start + reassignment.MOVES_MAX]
                outcomes += await self._retried(
                    partial(self._reassign_topic, some, may_change_factor)
                )
        if self.image is before:
            return events.Reply(outcomes)
        deliveries = self._send(before)
        # Last: the new replicas may still be copying from these logs.
        for broker_id, dropped in reassignment.dropped(before, self.image, by_topic).items():
            notice = Notice(broker_id=broker_id, stop=dropped, delete=True)
            deliveries += self._outbox.send([notice])
        return events.Reply(outcomes, deliveries)

    async def _reassign_topic(
        self, requests: Sequence[Reassignment], may_change_factor: bool
    ) -> list[PartitionOutcome]:
        name = requests[0].topic
        rules = reassignment.Rules(self.image.brokers, may_change_factor, self._is_unclean(name))
        former = self.image.topic(name)
        topic, outcomes = reassignment.plan_topic(former, requests, rules)
        if former is not None and topic is not None and topic is not former:
            write = reassignment.write_topic(former, topic, self.term.epoch)
            await self._tree.write(write.operations)
            self.image = self.image.with_topics(write.topics)
            _log.info("partitions reassigned topic=%s", name)
        return outcomes

    # -- deletion ---------------------------------------------------------------------------------

    async def delete_topics(self, topics: Sequence[str]) -> events.Reply:
        """Start to delete topics; the deliveries complete once every reachable log is deleted."""
        outcomes = [
            await self._outcome(name, partial(self._request_deletion, name)) for name in topics
        ]
        accepted = [outcome.name for outcome in outcomes if outcome.error is None]
        before = self.image
        # If the tree was loaded in between, some deletions have been started there.
        begun = [name for name in accepted if name in before.topics]
        self.image = before.with_topics(deleted=begun)
        for name in begun:
            self._deletions.begin(before.topics[name])
        self._send(before)
        waiting = self._deletions.futures(accepted)
        await self._deletions.proceed()
        return events.Reply(outcomes, waiting)

    async def _request_deletion(self, name: str) -> None:
        if not self._dependencies.options().boolean("delete.topic.enable"):
            raise ApiError(ErrorCode.TOPIC_DELETION_DISABLED)
        if self.image.topic(name) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        await self._tree.write([Create(DeleteTopicsNode.path(name))])

    async def _remove_nodes_retried(self, name: str) -> None:
        await self._retried(partial(self._remove_nodes, name))

    async def _remove_nodes(self, name: str) -> None:
        slices = Slices(self._dependencies.clock)
        paths = await state.removable_paths(self._session, name, slices)
        for write in planner.write_removal(paths):
            await self._tree.write(write.operations)

    async def delivered(self, delivered: Delivered) -> None:
        """Log the partitions that a broker failed to change, and apply logs that it deleted."""
        notice = delivered.notice
        failed_here: list[elections.TopicPartition] = []
        for (topic, partition), code in delivered.errors.items():
            if code is ErrorCode.STALE_CONTROLLER_EPOCH:
                # It knew this state, or a newer one, already.
                continue
            if code is ErrorCode.KAFKA_STORAGE_ERROR and not notice.delete:
                failed_here.append((topic, partition))
                continue
            _log.error(
                "broker failed broker=%d topic=%s partition=%d code=%s",
                notice.broker_id, topic, partition, code.name,
            )  # fmt: skip
        if failed_here:
            await self._retried(partial(self._take_offline, notice.broker_id, failed_here))
        if notice.delete:
            await self._deletions.delivered(delivered)

    # -- configuration ----------------------------------------------------------------------------

    async def alter_configs(
        self, requests: Sequence[ConfigRequest], validate_only: bool
    ) -> events.Reply:
        """Change dynamic settings; the reply has an Outcome for each entity."""
        return events.Reply(
            [
                await self._outcome(
                    request.entity, partial(self._configs.alter, request, validate_only)
                )
                for request in requests
            ]
        )

    async def changes_expired(self, paths: Sequence[str]) -> None:
        """Remove change notifications that every broker has read."""
        await self._configs.expire(paths)


def log_elections(before: ClusterImage, after: ClusterImage) -> None:
    """Log one line for each topic whose leaders changed; leader -1 means none."""
    if not _log.isEnabledFor(logging.INFO):
        return
    for name, topic in after.topics.items():
        former = before.topics.get(name)
        if former is None or former is topic:
            continue
        changed = [
            f"{now.partition}:{old.leader}->{now.leader}"
            for old, now in zip(former.partitions, topic.partitions, strict=False)
            if old.leader != now.leader
        ]
        if changed:
            named = ",".join(changed[:_NAMED_MAX])
            _log.info("leaders elected topic=%s count=%d leaders=%s", name, len(changed), named)
