"""The entry point to the groups that this broker coordinates: wire requests in, responses out.

A method returns its response, or a future of it if the request must wait. Errors of a group are in
the response, never raised. The name of a group determines its partition of __consumer_offsets, and
thereby the broker that coordinates it.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.options import Snapshot
from ottla.base.rng import Rng
from ottla.base.tasks import Tasks
from ottla.base.uuids import random_uuid, uuid_text
from ottla.cluster import names
from ottla.cluster.image import NO_LEADER, ClusterImage
from ottla.coordinators.classic.events import Event, Heartbeat, Join, Leave, Sync
from ottla.coordinators.consumer.assignment.assignors.plan import Assignments
from ottla.coordinators.consumer.groups import at_once
from ottla.coordinators.consumer.requests import classic, heartbeat
from ottla.coordinators.consumer.settings import ConsumerSettings
from ottla.coordinators.consumer.transition import Client
from ottla.coordinators.groups import commits, consumers, queries, transactional
from ottla.coordinators.groups.offsets import CommittedOffset, TopicPartition
from ottla.coordinators.groups.settings import GroupSettings
from ottla.coordinators.groups.shard import GroupShard
from ottla.coordinators.naming import fresh_text, partition_of
from ottla.coordinators.ports import Marker, PartitionWriter
from ottla.coordinators.refusals import commit_error, group_error
from ottla.coordinators.replies import R, Reply, Waiter, gathered
from ottla.coordinators.runtime import CoordinatorRuntime, Decision
from ottla.wire.messages.consumer_group_describe import DescribedGroup as ConsumerGroupDescribed
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
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
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

OFFSETS_TOPIC = names.GROUP_OFFSETS_TOPIC

InBackground: TypeAlias = Callable[[Callable[[], Assignments]], Awaitable[Assignments]]


def _no_options(_: str) -> Mapping[str, int]:
    return {}


class GroupCoordinator:
    """The groups of every partition of __consumer_offsets that this broker leads.

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
        self._group_options = group_options
        self._tasks = tasks
        # Runs the assignors of large groups elsewhere; who has other threads sets it.
        self.in_background: InBackground | None = None
        self._rng = rng
        self._options = options
        self._image = image
        self._settings_of: tuple[Snapshot | None, GroupSettings] = (None, GroupSettings())
        self._runtime = CoordinatorRuntime(
            OFFSETS_TOPIC,
            lambda host: GroupShard(
                host,
                clock,
                self.settings,
                image=image,
                settings_of=self.settings_of,
                background=self._assign,
            ),
            writer=writer,
            clock=clock,
            tasks=tasks,
            settings=lambda: self.settings().runtime,
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

    def _assign(self, work: Callable[[], Assignments], then: Callable[[Assignments], None]) -> None:
        if self.in_background is None:
            at_once(work, then)
            return

        async def assign(elsewhere: InBackground) -> None:
            then(await elsewhere(work))

        in_background = partial(assign, self.in_background)
        self._tasks.supervise(in_background, "assignment of a large group")

    # -- leadership

    def load(self, partition: int, leader_epoch: int) -> None:
        """Coordinate the groups of a partition that this broker leads since `leader_epoch`.

        Requests fail with COORDINATOR_LOAD_IN_PROGRESS until it is loaded; a partition without
        records is ready on return.
        """
        self._runtime.load(partition, leader_epoch)

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """Stop coordinating a partition; waiting requests fail with NOT_COORDINATOR."""
        self._runtime.unload(partition, leader_epoch)

    def topics_deleted(self, topics: Iterable[str]) -> None:
        """Remove the offsets of deleted topics."""
        names = frozenset(topics)
        if names:
            for _, shard in self._runtime.every_shard():
                shard.forget_topics(names)

    @property
    def skipped_count(self) -> int:
        """Records of __consumer_offsets that could not be read and were skipped while loading."""
        return self._runtime.skipped_count

    def close(self) -> None:
        """Unload every partition."""
        self._runtime.close()

    # -- where a group is

    def partition_for(self, group_id: str) -> int:
        """Return the partition of __consumer_offsets for a group."""
        topic = self._image().topic(OFFSETS_TOPIC)
        count = len(topic.partitions) if topic is not None else 0
        return partition_of(group_id, count or self.settings().offsets_partitions)

    def coordinator_for(self, group_id: str) -> int:
        """Return the broker that coordinates a group; -1 if there is none at present."""
        topic = self._image().topic(OFFSETS_TOPIC)
        if topic is None:
            return NO_LEADER
        partition = topic.partition(self.partition_for(group_id))
        return NO_LEADER if partition is None else partition.leader

    # -- membership

    def join_group(
        self, request: JoinGroupRequest, *, api_version: int, client_id: str, client_host: str
    ) -> Reply[JoinGroupResponse]:
        """Join or rejoin a group; the response is sent when the generation has all its members."""

        def refuse(code: ErrorCode) -> JoinGroupResponse:
            return JoinGroupResponse(error_code=group_error(code), member_id=request.member_id)

        settings = self.settings()
        if not request.group_id:
            return refuse(ErrorCode.INVALID_GROUP_ID)
        shortest, longest = settings.min_session_timeout_ms, settings.max_session_timeout_ms
        if not shortest <= request.session_timeout_ms <= longest:
            return refuse(ErrorCode.INVALID_SESSION_TIMEOUT)
        if request.rebalance_timeout_ms < 0:
            # Version 0 has no separate rebalance timeout.
            request.rebalance_timeout_ms = request.session_timeout_ms
        if self._speaks_consumer(request.group_id, gives_way=not request.member_id):
            fresh_uuid = uuid_text(random_uuid(self._rng))
            joiner = classic.Joiner(Client(client_id, client_host), api_version, fresh_uuid)
            return self._decide(
                request.group_id,
                lambda shard: consumers.join(shard, request, joiner),
                lambda code: JoinGroupResponse(error_code=group_error(code)),
            )
        waiter: Waiter[JoinGroupResponse] = Waiter()
        fresh_id = fresh_text(self._rng)
        event = Join(waiter, request, api_version, client_id, client_host, fresh_id)
        may_create = not request.member_id
        return self._feed(request.group_id, event, waiter, refuse, may_create=may_create)

    def sync_group(self, request: SyncGroupRequest) -> Reply[SyncGroupResponse]:
        """Fetch the member's assignment; the leader sends the assignments of all members."""

        def refuse(code: ErrorCode) -> SyncGroupResponse:
            return SyncGroupResponse(error_code=group_error(code))

        if self._speaks_consumer(request.group_id):
            return self._decide(
                request.group_id, lambda shard: consumers.sync(shard, request), refuse
            )
        waiter: Waiter[SyncGroupResponse] = Waiter()
        return self._feed(request.group_id, Sync(waiter, request), waiter, refuse)

    def heartbeat(self, request: HeartbeatRequest) -> Reply[HeartbeatResponse]:
        """Keep a membership alive; answered immediately."""

        def refuse(code: ErrorCode) -> HeartbeatResponse:
            if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                # The session starts when the group is loaded: nothing is wrong with the member.
                return HeartbeatResponse()
            return HeartbeatResponse(error_code=group_error(code))

        if self._speaks_consumer(request.group_id):
            return self._decide(
                request.group_id, lambda shard: consumers.pulse(shard, request), refuse
            )
        waiter: Waiter[HeartbeatResponse] = Waiter()
        return self._feed(request.group_id, Heartbeat(waiter, request), waiter, refuse)

    def leave_group(self, request: LeaveGroupRequest) -> Reply[LeaveGroupResponse]:
        """Remove members; the request names its members as version 3 does."""

        def refuse(code: ErrorCode) -> LeaveGroupResponse:
            if code is not ErrorCode.UNKNOWN_MEMBER_ID:
                return LeaveGroupResponse(error_code=group_error(code))
            return LeaveGroupResponse(
                members=[
                    MemberResponse(
                        member_id=item.member_id,
                        group_instance_id=item.group_instance_id,
                        error_code=code,
                    )
                    for item in request.members
                ]
            )

        if self._speaks_consumer(request.group_id):
            return self._decide(
                request.group_id, lambda shard: consumers.leave(shard, request), refuse
            )
        waiter: Waiter[LeaveGroupResponse] = Waiter()
        return self._feed(request.group_id, Leave(waiter, request), waiter, refuse)

    def _speaks_consumer(self, group_id: str, *, gives_way: bool = False) -> bool:
        """Return True if a group uses the consumer protocol.

        With `gives_way` a group without members does not count: it is deleted, so that a classic
        one can be created.
        """
        shard = self._runtime.find(self.partition_for(group_id))
        group = None if isinstance(shard, ErrorCode) else shard.consumers.get(group_id)
        if group is None or isinstance(shard, ErrorCode):
            return False
        return bool(group.members) or not (gives_way and shard.end_empty(group))

    def _decide(
        self,
        group_id: str,
        decision: Callable[[GroupShard], Decision[R]],
        refuse: Callable[[ErrorCode], R],
    ) -> Reply[R]:
        return self._runtime.decide(self.partition_for(group_id), decision, refuse)

    def _feed(
        self,
        group_id: str,
        event: Event,
        waiter: Waiter[R],
        refuse: Callable[[ErrorCode], R],
        *,
        may_create: bool = False,
    ) -> Reply[R]:
        if not group_id:
            return refuse(ErrorCode.INVALID_GROUP_ID)
        shard = self._runtime.find(self.partition_for(group_id))
        if isinstance(shard, ErrorCode):
            return refuse(shard)
        if not shard.feed(group_id, event, may_create=may_create):
            return refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        return waiter.reply()

    # -- the consumer protocol

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, *, api_version: int, client: Client
    ) -> Reply[ConsumerGroupHeartbeatResponse]:
        """Join, leave, or report the owned partitions and return the assignment (KIP-848)."""
        settings = self.settings().consumer
        try:
            heartbeat.check(request, api_version, settings.assignors)
        except ApiError as error:
            return consumers.refused(error)
        request.member_id = request.member_id or uuid_text(random_uuid(self._rng))
        return self._runtime.decide(
            self.partition_for(request.group_id),
            lambda shard: consumers.decide(shard, request, client),
            lambda code: consumers.refused(ApiError(group_error(code))),
        )

    def describe_consumer_group(self, group_id: str) -> Reply[ConsumerGroupDescribed]:
        """Describe a group of the consumer protocol when its current state is committed."""

        def refuse(code: ErrorCode) -> ConsumerGroupDescribed:
            return ConsumerGroupDescribed(group_id=group_id, error_code=group_error(code))

        if not group_id:
            return refuse(ErrorCode.INVALID_GROUP_ID)
        return self._runtime.read(
            self.partition_for(group_id),
            lambda shard: consumers.describe(shard, group_id),
            refuse,
        )

    # -- offsets

    def commit_offsets(
        self, request: OffsetCommitRequest, *, api_version: int
    ) -> Reply[OffsetCommitResponse]:
        """Store offsets; topics are identified by name."""
        return self._runtime.decide(
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
        return self._runtime.decide(
            self.partition_for(request.group_id),
            lambda shard: transactional.commit(shard, request),
            lambda code: transactional.refused(request, commit_error(code)),
        )

    def end_transaction(self, partition: int, marker: Marker) -> Reply[ErrorCode]:
        """Write a marker to a partition of __consumer_offsets: its offsets take effect or are
        dropped.
        """
        return self._runtime.end_transaction(partition, marker)

    def fetch_offsets(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool
    ) -> Reply[OffsetFetchResponseGroup]:
        """Return the offsets of one group; topics are identified by name, None means all."""
        return self._runtime.read(
            self.partition_for(request.group_id),
            lambda shard: commits.fetch(shard, request, require_stable=require_stable),
            lambda code: OffsetFetchResponseGroup(
                group_id=request.group_id, error_code=group_error(code)
            ),
        )

    def committed_offsets(self) -> Iterator[tuple[str, Mapping[TopicPartition, CommittedOffset]]]:
        """Iterate over the offsets of every group, including those not yet committed to the log."""
        for _, shard in self._runtime.shards():
            for group_id in shard.offsets.groups():
                yield group_id, shard.offsets.of_group(group_id)

    # -- looking and deleting

    def describe_groups(
        self, request: DescribeGroupsRequest, *, api_version: int
    ) -> DescribeGroupsResponse:
        """Describe the current state of groups, including changes not yet committed to the log."""
        groups = [self._describe(group_id, api_version) for group_id in request.groups]
        return DescribeGroupsResponse(groups=groups)

    def _describe(self, group_id: str, api_version: int) -> DescribedGroup:
        shard = self._runtime.find(self.partition_for(group_id))
        if isinstance(shard, ErrorCode):
            return DescribedGroup(group_id=group_id, error_code=shard)
        return queries.describe(shard, group_id, api_version)

    def list_groups(self, request: ListGroupsRequest) -> ListGroupsResponse:
        """List this broker's groups; an error code reports if partitions are still being loaded."""
        listed: list[ListedGroup] = []
        for _, shard in self._runtime.shards():
            listed.extend(queries.listed(shard, request.states_filter, request.types_filter))
        is_loading = self._runtime.is_loading()
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NONE
        return ListGroupsResponse(error_code=code, groups=listed)

    def delete_groups(self, request: DeleteGroupsRequest) -> Reply[DeleteGroupsResponse]:
        """Delete empty groups and their offsets."""
        replies = [self._delete(group_id) for group_id in dict.fromkeys(request.groups_names)]
        return gathered(replies, lambda results: DeleteGroupsResponse(results=results))

    def _delete(self, group_id: str) -> Reply[DeletableGroupResult]:
        return self._runtime.decide(
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
        return self._runtime.decide(
            self.partition_for(request.group_id),
            lambda shard: queries.delete_offsets(shard, request),
            refuse,
        )
