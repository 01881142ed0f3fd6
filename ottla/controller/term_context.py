"""The state and steps that all parts of a controller term share: image, tree and outbox.

Each event is handled in three steps: the pure modules plan, the tree is written, the outbox sends
notices to brokers. If a write finds that the tree differs from the image, the whole tree is read
again and the event is planned again. Each step treats a few topics at a time, and lets the event
loop run in between: no other event is handled by then.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.base.options import Snapshot
from ottla.base.rng import Rng
from ottla.base.slices import Slices
from ottla.base.tasks import Tasks
from ottla.cluster.image import BrokerImage, ClusterImage, TopicImage
from ottla.cluster.zk.port import (
    BadVersion,
    Coordination,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Result,
)
from ottla.controller import events, state
from ottla.controller.outbox import Outbox
from ottla.controller.planning import creation, elections, planner
from ottla.controller.planning.notices import (
    BrokerPort,
    Delivered,
    Fence,
    MetadataUpdate,
    Notice,
)
from ottla.controller.planning.registrations import Registrations, VolatileRegistrations
from ottla.controller.planning.requests import EntityResult, TopicRequest

_log = logging.getLogger(__name__)

T = TypeVar("T")

ATTEMPTS = 3
CONFLICTS = (BadVersion, NodeExists, NoNode, NotEmpty)
# Partitions per log line.
_NAMED_MAX = 20
# Partitions that are planned at a stretch: some milliseconds of work.
PARTITIONS_AT_ONCE = 500

Deliveries = list["asyncio.Future[None]"]


def _ignore(_: ConfigError) -> None:
    pass


async def _nowhere(_: TopicRequest) -> bool:
    raise ApiError(ErrorCode.NOT_CONTROLLER)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Dependencies:
    """The dependencies of a controller: ports, configuration, connections to brokers and to the
    tree.

    `registration_seconds` is how long the broker waits for the end of another session that has
    registered its id, `registrations` are those that it may replace; `on_deposed` is called with
    the reason when another process has taken the id, and has to stop the broker;
    `create_elsewhere` has the controller on another broker create a topic unless it exists, and
    returns True if it has created it;
    `local_image` is the cluster as this broker knows it from the controller; `ignores_case` is True
    if one of its log directories is on a disk that ignores case.
    """

    clock: Clock
    rng: Rng
    tasks: Tasks
    options: Callable[[], Snapshot]
    topic_options: Callable[[str], Snapshot]
    port_of: Callable[[BrokerImage], BrokerPort]
    connect: Callable[[], Awaitable[Coordination]]
    registration_seconds: float = 0.0
    registrations: Registrations = field(default_factory=VolatileRegistrations)
    on_deposed: Callable[[ConfigError], None] = _ignore
    create_elsewhere: Callable[[TopicRequest], Awaitable[bool]] = _nowhere
    local_image: Callable[[], ClusterImage] = ClusterImage
    ignores_case: bool = False


class TreeWriter(NamedTuple):
    """Writes to the coordination tree as the controller of one term; StaleController if it is over."""

    session: Coordination
    term: state.Term

    async def write(self, operations: Sequence[Operation]) -> list[Result]:
        """Perform all operations or none."""
        return await state.write(self.session, self.term, operations)

    async def remove(self, paths: Iterable[str]) -> None:
        """Delete nodes one by one; a node that does not exist is skipped."""
        for path in paths:
            try:
                await self.write([Delete(path)])
            except NoNode:
                continue


class TermContext:
    """The image of one term, and how it changes; `reload` reads the tree again."""

    def __init__(
        self,
        session: Coordination,
        term: state.Term,
        broker_id: int,
        dependencies: Dependencies,
        post: events.Post,
    ) -> None:
        self.session = session
        self.term = term
        self.broker_id = broker_id
        self.dependencies = dependencies
        self.post = post
        self.image = ClusterImage()
        self.unclean_elections_count = 0
        self.tree = TreeWriter(session, term)
        self.outbox = Outbox(dependencies.tasks, dependencies.clock, dependencies.port_of)
        self.reload: Callable[[], Awaitable[object]] = self._cannot_reload

    async def _cannot_reload(self) -> None:
        raise AssertionError("the term sets `reload` when it begins")

    # -- plans --------------------------------------------------------------------------------

    def is_unclean(self, topic: str) -> bool:
        """Return True if a leader of the topic may be elected that is not in sync."""
        return self.dependencies.topic_options(topic).boolean("unclean.leader.election.enable")

    async def planned(self, plan: Callable[[ClusterImage], ClusterImage]) -> ClusterImage:
        """Return the image after a plan that treats each topic by itself, made in slices."""
        image, slices = self.image, Slices(self.dependencies.clock)
        changed: list[TopicImage] = []
        after = image
        for part in image.parts(PARTITIONS_AT_ONCE):
            after = plan(part)
            changed += _changed(part, after)
            await slices.pause()
        if changed:
            image = image.with_topics(changed)
        return image if after.brokers is image.brokers else replace(image, brokers=after.brokers)

    def environment(self) -> creation.Environment:
        """Return the inputs of a plan besides the request."""
        return creation.Environment(
            image=self.image,
            options=self.dependencies.options(),
            rng=self.dependencies.rng,
            ignores_case=self.dependencies.ignores_case,
        )

    async def retried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Perform a plan; if the tree differs from the image, load the tree and plan again."""
        for _ in range(ATTEMPTS - 1):
            try:
                return await attempt()
            except CONFLICTS as error:
                _log.warning("tree differs from the image, reading it again error=%s", error)
                await self.reload()
        return await attempt()

    async def attempt(self, name: str, attempt: Callable[[], Awaitable[None]]) -> EntityResult:
        """Perform a plan for one named entity, and return its result."""
        try:
            await self.retried(attempt)
        except ApiError as error:
            return EntityResult(name, error)
        return EntityResult(name, None)

    # -- writes -------------------------------------------------------------------------------

    async def write_states(self, after: ClusterImage) -> None:
        """Write the partition states in which `after` differs, and make it the image."""
        topics = {topic.name: topic for topic in _changed(self.image, after)}
        for part in replace(after, topics=topics).parts(PARTITIONS_AT_ONCE):
            for write in planner.write_states(self.image, part, self.term.epoch):
                for parent in write.parents:
                    await self.session.ensure(parent)
                if write.operations:
                    await self.tree.write(write.operations)
                after = after.with_topics(write.topics)
        log_elections(self.image, after)
        unclean = elections.unclean(self.image, after)
        self.unclean_elections_count += len(unclean)
        if unclean:
            names = ",".join(f"{topic}-{number}" for topic, number in unclean[:_NAMED_MAX])
            _log.warning("leaders elected that were not in sync count=%d partitions=%s",
                         len(unclean), names)  # fmt: skip
        self.image = after

    # -- notices ------------------------------------------------------------------------------

    async def send(self, before: ClusterImage, registered: Iterable[int] = ()) -> Deliveries:
        """Send every broker the difference between `before` and the image.

        Brokers that just `registered` receive the complete image.
        """
        after, complete = self.image, frozenset(registered)
        topics = after.topics if complete else {t.name: t for t in _changed(before, after)}
        deleted = {name: before.topics[name] for name in before.topics if name not in after.topics}
        slices = Slices(self.dependencies.clock)
        notices: dict[int, Notice] = {}
        for part in replace(after, topics=topics).parts(PARTITIONS_AT_ONCE):
            former = {name: before.topics[name] for name in part.topics if name in before.topics}
            former_part = replace(before, topics=deleted | former)
            for notice in planner.plan_notices(former_part, part, complete):
                earlier = notices.get(notice.broker_id)
                notices[notice.broker_id] = _joined(earlier, notice) if earlier else notice
            deleted = {}
            await slices.pause()
        return self.outbox.send(notices.values())

    def fence_of(self, broker: BrokerImage) -> Fence:
        """Return the epochs of this term's notices to a broker."""
        return Fence(self.broker_id, self.term.epoch, broker.epoch)

    def open_lane(self, broker: BrokerImage) -> None:
        """Begin to send notices to a broker that registered."""
        self.outbox.open(broker, self.fence_of(broker), self._delivered)

    def _delivered(self, delivered: Delivered) -> None:
        if delivered.errors or delivered.notice.delete:
            self.post(lambda term: term.delivered(delivered))


def _changed(before: ClusterImage, after: ClusterImage) -> list[TopicImage]:
    """Return the topics of `after` that `before` does not have as they are."""
    return [topic for name, topic in after.topics.items() if before.topics.get(name) is not topic]


def _joined(first: Notice, second: Notice) -> Notice:
    """Return the notice of both, for the same broker; their topics are different ones."""
    one, other = first.metadata, second.metadata
    assert one is not None
    assert other is not None
    return first._replace(
        leaders=(*first.leaders, *second.leaders),
        metadata=MetadataUpdate(
            one.brokers,
            (*one.changed, *other.changed),
            (*one.deleted, *other.deleted),
            is_complete=one.is_complete,
        ),
    )


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
            for now in topic.differences(former)
            for old in (former.partition(now.partition),)
            if old is not None and old.leader != now.leader
        ]
        if changed:
            partitions_text = ",".join(changed[:_NAMED_MAX])
            _log.info(
                "leaders elected topic=%s count=%d leaders=%s", name, len(changed), partitions_text
            )
