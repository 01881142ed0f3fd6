"""The entry point to the groups that this broker coordinates: wire requests in, responses out.

A method returns its response, or a future of it if the request must wait. Errors of a group are in
the response, never raised. The name of a group determines its partition of __consumer_offsets, and
thereby the broker that coordinates it.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.base.loading import deferred_module
from ottla.base.options import Snapshot
from ottla.base.rng import Rng
from ottla.base.tasks import Tasks
from ottla.cluster import names
from ottla.cluster.image import NO_LEADER, ClusterImage
from ottla.coordinators.consumer.settings import ConsumerSettings
from ottla.coordinators.groups.settings import GroupSettings
from ottla.coordinators.hosted import HostedPartition
from ottla.coordinators.naming import partition_of
from ottla.coordinators.ports import Marker, PartitionWriter
from ottla.coordinators.refusals import commit_error, group_error
from ottla.coordinators.replies import Reply, gathered
from ottla.coordinators.runtime import CoordinatorRuntime
from ottla.wire.messages.consumer_group_describe import DescribedGroup as ConsumerGroupDescribed
from ottla.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ottla.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

# A broker without groups imports none of the modules that decide about them: start time and memory.
if TYPE_CHECKING:
    from ottla.coordinators.consumer import groups as consumer_groups
    from ottla.coordinators.consumer.assignment.assignors.plan import Assignments
    from ottla.coordinators.groups import (
        commits,
        consumers,
        queries,
        transactional,
    )
    from ottla.coordinators.groups import membership as members
    from ottla.coordinators.groups import shard as shards
    from ottla.coordinators.groups.offsets import CommittedOffset, TopicPartition
else:
    consumer_groups = deferred_module("ottla.coordinators.consumer.groups")
    commits = deferred_module("ottla.coordinators.groups.commits")
    consumers = deferred_module("ottla.coordinators.groups.consumers")
    members = deferred_module("ottla.coordinators.groups.membership")
    queries = deferred_module("ottla.coordinators.groups.queries")
    shards = deferred_module("ottla.coordinators.groups.shard")
    transactional = deferred_module("ottla.coordinators.groups.transactional")


# The deferred modules, after the larger ones that they import: each takes less than 10 ms.
DEFERRED_MODULES = (
    "ottla.coordinators.classic.events",
    "ottla.coordinators.classic.state",
    "ottla.coordinators.classic.machine",
    "ottla.coordinators.consumer.state",
    "ottla.coordinators.consumer.groups",
    "ottla.coordinators.groups.shard",
    "ottla.coordinators.groups.membership",
    "ottla.coordinators.groups.commits",
    "ottla.coordinators.groups.consumers",
    "ottla.coordinators.groups.queries",
    "ottla.coordinators.groups.transactional",
)

InBackground: TypeAlias = "Callable[[Callable[[], Assignments]], Awaitable[Assignments]]"


def _no_options(_: str) -> Mapping[str, int]:
    return {}


class GroupCoordinator:
    """The groups of every partition of __consumer_offsets that this broker leads.

    `membership` handles the requests of members; the methods here are about offsets and groups.
    `load` and `unload` follow the leadership of the partitions; `options` and `image` are called
    again for each request. Lives on the broker's loop.
    """

    def __init__(
        self,
        *,
        writer: PartitionWriter,
        clock: Clock,
        rng: Rng,
        tasks: Tasks,
        options: Callable[[], Snapshot],
        image: Callable[[], ClusterImage],
        group_options: Callable[[str], Mapping[str, int]] = _no_options,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._group_options = group_options
        self._tasks = tasks
        # Runs the assignors of large groups elsewhere; who has other threads sets it.
        self.in_background: InBackground | None = None
        self._options = options
        self._image = image
        self._settings_of: tuple[Snapshot | None, GroupSettings] = (None, GroupSettings())
        self.runtime = CoordinatorRuntime(
            names.GROUP_OFFSETS_TOPIC,
            self._new_shard,
            writer=writer,
            clock=clock,
            tasks=tasks,
            settings=lambda: self.settings().runtime,
        )

    @cached_property
    def membership(self) -> "members.GroupMembers":
        """The requests of members."""
        return members.GroupMembers(self._find_shard, self.settings, self._rng)

    def _new_shard(self, host: HostedPartition) -> "shards.GroupShard":
        return shards.GroupShard(
            host,
            self._clock,
            self.settings,
            image=self._image,
            settings_of=self.settings_of,
            background=self._assign,
        )

    def settings(self) -> GroupSettings:
        """Return the current options for groups."""
        snapshot = self._options()
        if self._settings_of[0] is not snapshot:
            self._settings_of = (snapshot, GroupSettings.from_options(snapshot))
        return self._settings_of[1]

    def settings_of(self, group_id: str) -> ConsumerSettings:
        """Return the options of one group of the consumer protocol."""
        return self.settings().consumer.of_group(self._group_options(group_id))

    def _assign(
        self, work: "Callable[[], Assignments]", callback: "Callable[[Assignments], None]"
    ) -> None:
        if self.in_background is None:
            consumer_groups.at_once(work, callback)
            return

        async def assign(elsewhere: InBackground) -> None:
            callback(await elsewhere(work))

        in_background = partial(assign, self.in_background)
        self._tasks.supervise(in_background, "assignment of a large group")

    # -- leadership

    def load(self, partition: int, leader_epoch: int) -> None:
        """Coordinate the groups of a partition that this broker leads since `leader_epoch`.

        Requests fail with COORDINATOR_LOAD_IN_PROGRESS until it is loaded; a partition without
        records is ready on return.
        """
        self.runtime.load(partition, leader_epoch)

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """Stop coordinating a partition; waiting requests fail with NOT_COORDINATOR."""
        self.runtime.unload(partition, leader_epoch)

    def topics_deleted(self, topics: Iterable[str]) -> None:
        """Remove the offsets of deleted topics."""
        names = frozenset(topics)
        if names:
            for _, shard in self.runtime.every_shard():
                shard.forget_topics(names)

    @property
    def skipped_count(self) -> int:
        """Records of __consumer_offsets that could not be read and were skipped while loading."""
        return self.runtime.skipped_count

    def close(self) -> None:
        """Unload every partition."""
        self.runtime.close()

    # -- where a group is

    def partition_for(self, group_id: str) -> int:
        """Return the partition of __consumer_offsets for a group."""
        topic = self._image().topic(names.GROUP_OFFSETS_TOPIC)
        count = len(topic.partitions) if topic is not None else 0
        return partition_of(group_id, count or self.settings().offsets_partitions)

    def coordinator_for(self, group_id: str) -> int:
        """Return the broker that coordinates a group; -1 if no broker does at present."""
        topic = self._image().topic(names.GROUP_OFFSETS_TOPIC)
        if topic is None:
            return NO_LEADER
        partition = topic.partition(self.partition_for(group_id))
        return NO_LEADER if partition is None else partition.leader

    def _find_shard(self, group_id: str) -> "shards.GroupShard | ErrorCode":
        return self.runtime.find(self.partition_for(group_id))

    # -- offsets

    def commit_offsets(
        self, request: OffsetCommitRequest, *, api_version: int
    ) -> Reply[OffsetCommitResponse]:
        """Store offsets; topics are identified by name."""
        return self.runtime.decide(
            self.partition_for(request.group_id),
            lambda shard: commits.commit(shard, request, api_version),
            lambda code: commits.refused_commit(request, commit_error(code)),
        )

    def commit_offsets_in_transaction(
        self, request: TxnOffsetCommitRequest
    ) -> Reply[TxnOffsetCommitResponse]:
        """Store offsets that take effect when the producer's transaction is committed."""
        if not request.group_id:
            return transactional.refused(request, ErrorCode.INVALID_GROUP_ID)
        return self.runtime.decide(
            self.partition_for(request.group_id),
            lambda shard: transactional.commit(shard, request),
            lambda code: transactional.refused(request, commit_error(code)),
        )

    def end_transaction(self, partition: int, marker: Marker) -> Reply[ErrorCode]:
        """Write a marker to a partition of __consumer_offsets: its offsets take effect or are
        dropped.
        """
        return self.runtime.end_transaction(partition, marker)

    def fetch_offsets(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool
    ) -> Reply[OffsetFetchResponseGroup]:
        """Return the offsets of one group; topics are identified by name, None means all."""
        return self.runtime.read(
            self.partition_for(request.group_id),
            lambda shard: commits.fetch(shard, request, require_stable=require_stable),
            lambda code: OffsetFetchResponseGroup(
                group_id=request.group_id, error_code=group_error(code)
            ),
        )

    def committed_offsets(
        self,
    ) -> "Iterator[tuple[str, Mapping[TopicPartition, CommittedOffset]]]":
        """Iterate over the offsets of every group, including those not yet committed to the log."""
        for _, shard in self.runtime.shards():
            for group_id in shard.offsets.groups():
                yield group_id, shard.offsets.of_group(group_id)

    # -- describing and deleting

    def describe_consumer_group(self, group_id: str) -> Reply[ConsumerGroupDescribed]:
        """Describe a group of the consumer protocol when its current state is committed."""

        def refuse(code: ErrorCode) -> ConsumerGroupDescribed:
            return ConsumerGroupDescribed(group_id=group_id, error_code=group_error(code))

        if not group_id:
            return refuse(ErrorCode.INVALID_GROUP_ID)
        return self.runtime.read(
            self.partition_for(group_id),
            lambda shard: consumers.describe(shard, group_id),
            refuse,
        )

    def describe_groups(
        self, request: DescribeGroupsRequest, *, api_version: int
    ) -> DescribeGroupsResponse:
        """Describe the current state of groups, including changes not yet committed to the log."""
        described = {
            group_id: self._describe(group_id, api_version) for group_id in set(request.groups)
        }
        return DescribeGroupsResponse(groups=[described[group_id] for group_id in request.groups])

    def _describe(self, group_id: str, api_version: int) -> DescribedGroup:
        shard = self._find_shard(group_id)
        if isinstance(shard, ErrorCode):
            return DescribedGroup(group_id=group_id, error_code=shard)
        return queries.describe(shard, group_id, api_version)

    def list_groups(self, request: ListGroupsRequest) -> ListGroupsResponse:
        """List this broker's groups; an error code reports if partitions are still being loaded."""
        listed: list[ListedGroup] = []
        for _, shard in self.runtime.shards():
            listed.extend(queries.listed(shard, request.states_filter, request.types_filter))
        is_loading = self.runtime.is_loading()
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NONE
        return ListGroupsResponse(error_code=code, groups=listed)

    def delete_groups(self, request: DeleteGroupsRequest) -> Reply[DeleteGroupsResponse]:
        """Delete empty groups and their offsets."""
        replies = [self._delete(group_id) for group_id in dict.fromkeys(request.groups_names)]
        return gathered(replies, lambda results: DeleteGroupsResponse(results=results))

    def _delete(self, group_id: str) -> Reply[DeletableGroupResult]:
        return self.runtime.decide(
            self.partition_for(group_id),
            lambda shard: queries.delete(shard, group_id),
            lambda code: DeletableGroupResult(group_id=group_id, error_code=group_error(code)),
        )

    def delete_offsets(self, request: OffsetDeleteRequest) -> Reply[OffsetDeleteResponse]:
        """Delete single offsets of a group; the caller has checked that the partitions exist."""

        def refuse(code: ErrorCode) -> OffsetDeleteResponse:
            return OffsetDeleteResponse(error_code=group_error(code))

        if not request.group_id:
            return refuse(ErrorCode.INVALID_GROUP_ID)
        return self.runtime.decide(
            self.partition_for(request.group_id),
            lambda shard: queries.delete_offsets(shard, request),
            refuse,
        )
