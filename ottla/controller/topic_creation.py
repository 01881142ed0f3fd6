"""New topics and new partitions of one controller term. Follows AdminZkClient."""

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.slices import Slices
from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.cluster.names import TopicNames
from ottla.cluster.zk.port import NodeExists
from ottla.cluster.znodes import ConfigNode
from ottla.controller import events
from ottla.controller.planning import creation
from ottla.controller.planning.requests import (
    Admit,
    EntityResult,
    PartitionsRequest,
    TopicRequest,
    TopicResult,
    admit_all,
)
from ottla.controller.term_context import TermContext

_log = logging.getLogger(__name__)


class _NamesInUse:
    """The names of topics while several are created: collected once, not for each new topic."""

    def __init__(self, being_deleted: Callable[[], Iterable[str]]) -> None:
        self._being_deleted = being_deleted
        self._image: ClusterImage | None = None
        self._names = TopicNames(())

    def of(self, image: ClusterImage) -> TopicNames:
        """Return the names; if the image was read again, the names are collected again."""
        if image is not self._image:
            self._names = TopicNames((*image.topics, *self._being_deleted()))
            self._image = image
        return self._names

    def created(self, name: str, image: ClusterImage) -> None:
        """Add a new topic, with which the image is this one."""
        self._names.add(name)
        self._image = image


class TopicCreation:
    """Creates topics and partitions; `being_deleted` returns the names of topics in deletion."""

    def __init__(self, context: TermContext, being_deleted: Callable[[], Iterable[str]]) -> None:
        self._context = context
        self._being_deleted = being_deleted

    async def create_topics(
        self,
        requests: Sequence[TopicRequest],
        validate_only: bool = False,
        admit: Admit = admit_all,
    ) -> events.Reply[list[TopicResult]]:
        """Create topics one by one; the reply has a TopicResult for each."""
        context = self._context
        before = context.image
        results = []
        existing = _NamesInUse(self._being_deleted)
        slices = Slices(context.dependencies.clock)
        for request in requests:
            await slices.pause()
            attempt = partial(self._create_topic, request, existing, validate_only, admit)
            try:
                results.append(await context.retried(attempt))
            except ApiError as error:
                results.append(TopicResult(request.name, error))
        deliveries = await context.send(before) if context.image is not before else ()
        return events.Reply(results, deliveries)

    async def _create_topic(
        self, request: TopicRequest, existing: _NamesInUse, validate_only: bool, admit: Admit
    ) -> TopicResult:
        context = self._context
        names = existing.of(context.image)
        placed = creation.place_topic(request, names, context.environment())
        _check(admit, request.name, placed)
        partitions = await self._make(placed)
        new = creation.new_topic(request, partitions, context.environment())
        topic, factor = new.topic, new.replication_factor
        result = TopicResult(
            topic.name, None, topic.topic_id, len(topic.partitions), factor, new.config
        )
        if validate_only:
            return result
        await self._yield_to_loop(topic)
        write = creation.write_topic(new, context.term.epoch)
        await self._yield_to_loop(topic)
        try:
            await context.tree.write(write.operations)
        except NodeExists as error:
            if error.path != ConfigNode.path(ConfigNode.TOPICS, topic.name):
                raise
            write = creation.write_topic(new, context.term.epoch, config_exists=True)
            await context.tree.write(write.operations)
        await self._write_rest(topic, 0)
        await self._yield_to_loop(topic)
        context.image = context.image.with_topics([topic])
        existing.created(topic.name, context.image)
        _log.info("topic created name=%s partitions=%d", topic.name, len(topic.partitions))
        return result

    async def _make(self, placed: creation.Placement) -> list[PartitionImage]:
        """Create new partitions, in slices."""
        created: list[PartitionImage] = []
        slices = Slices(self._context.dependencies.clock)
        for part in placed.parts():
            created += part
            await slices.pause()
        return created

    async def _yield_to_loop(self, topic: TopicImage) -> None:
        """Yield to the event loop between two long steps for a topic of many partitions."""
        if len(topic.partitions) > creation.PARTITIONS_AT_ONCE:
            await self._context.dependencies.clock.sleep(0)

    async def _write_rest(self, topic: TopicImage, former_count: int) -> None:
        first, epoch = former_count + creation.PARTITIONS_AT_ONCE, self._context.term.epoch
        for write in creation.write_rest(topic, first, epoch):
            await self._context.tree.write(write.operations)

    async def create_partitions(
        self,
        requests: Sequence[PartitionsRequest],
        validate_only: bool = False,
        admit: Admit = admit_all,
    ) -> events.Reply[list[EntityResult]]:
        """Add partitions to topics; the reply has an EntityResult for each."""
        context = self._context
        before = context.image
        results = []
        slices = Slices(context.dependencies.clock)
        for request in requests:
            await slices.pause()
            attempt = partial(self._create_partitions, request, validate_only, admit)
            results.append(await context.attempt(request.name, attempt))
        deliveries = await context.send(before) if context.image is not before else ()
        return events.Reply(results, deliveries)

    async def _create_partitions(
        self, request: PartitionsRequest, validate_only: bool, admit: Admit
    ) -> None:
        context = self._context
        former = context.image.topic(request.name)
        if former is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        placed = creation.place_partitions(request, former, context.environment())
        _check(admit, request.name, placed)
        topic = former.with_partitions(await self._make(placed))
        if validate_only:
            return
        await self._yield_to_loop(topic)
        write = creation.write_partitions(former, topic, context.term.epoch)
        await self._yield_to_loop(topic)
        await context.tree.write(write.operations)
        await self._write_rest(topic, len(former.partitions))
        context.image = context.image.with_topics(write.topics)
        _log.info("partitions created topic=%s now=%d", topic.name, len(topic.partitions))


def _check(admit: Admit, topic: str, placed: creation.Placement) -> None:
    """Raise the ApiError if the new partitions are not admitted."""
    error = admit(topic, len(placed.replicas))
    if error is not None:
        raise error
