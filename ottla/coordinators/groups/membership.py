"""Requests of members that join, stay in or leave a group, for both protocols.

A request looks up the shard of its group once. Errors of a group are in the response, never raised.
"""

from collections.abc import Callable

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.rng import Rng
from ottla.base.uuids import random_uuid, uuid_text
from ottla.coordinators.classic.events import Event, Heartbeat, Join, Leave, Sync
from ottla.coordinators.consumer.requests import classic, heartbeat
from ottla.coordinators.consumer.transition import Client
from ottla.coordinators.groups import consumers
from ottla.coordinators.groups.settings import GroupSettings
from ottla.coordinators.groups.shard import GroupShard
from ottla.coordinators.naming import fresh_text
from ottla.coordinators.refusals import group_error
from ottla.coordinators.replies import R, Reply, Waiter
from ottla.coordinators.runtime import Decision, decide_on
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class GroupMembers:
    """The members of the groups that this broker coordinates.

    `find_shard` returns the shard of a group, or the error if this broker does not coordinate it
    now.
    """

    def __init__(
        self,
        find_shard: Callable[[str], GroupShard | ErrorCode],
        settings: Callable[[], GroupSettings],
        rng: Rng,
    ) -> None:
        self._find_shard = find_shard
        self._settings = settings
        self._rng = rng

    def join_group(
        self,
        request: JoinGroupRequest,
        *,
        api_version: int,
        client_id: str,
        client_host: str,
        may_describe: Callable[[str], bool] | None = None,
    ) -> Reply[JoinGroupResponse]:
        """Join or rejoin a group; the response is sent when the generation has all its members.

        `may_describe` is the same as in `Client`.
        """

        def refuse(code: ErrorCode) -> JoinGroupResponse:
            return JoinGroupResponse(error_code=group_error(code), member_id=request.member_id)

        settings = self._settings()
        if not request.group_id:
            return refuse(ErrorCode.INVALID_GROUP_ID)
        shortest, longest = settings.min_session_timeout_ms, settings.max_session_timeout_ms
        if not shortest <= request.session_timeout_ms <= longest:
            return refuse(ErrorCode.INVALID_SESSION_TIMEOUT)
        if request.rebalance_timeout_ms < 0:
            # Version 0 has no separate rebalance timeout.
            request.rebalance_timeout_ms = request.session_timeout_ms
        shard = self._find_shard(request.group_id)
        if isinstance(shard, ErrorCode):
            return refuse(shard)
        if _uses_consumer_protocol(shard, request.group_id, replaces_empty=not request.member_id):
            fresh_uuid = uuid_text(random_uuid(self._rng))
            client = Client(client_id, client_host, may_describe)
            joiner = classic.Joiner(client, api_version, fresh_uuid)
            return decide_on(
                shard.host,
                shard,
                lambda shard: consumers.join(shard, request, joiner),
                lambda code: JoinGroupResponse(error_code=group_error(code)),
            )
        waiter: Waiter[JoinGroupResponse] = Waiter()
        fresh_id = fresh_text(self._rng)
        event = Join(waiter, request, api_version, client_id, client_host, fresh_id)
        if not shard.feed(request.group_id, event, may_create=not request.member_id):
            return refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        return waiter.reply()

    def sync_group(self, request: SyncGroupRequest) -> Reply[SyncGroupResponse]:
        """Fetch the member's assignment; the leader sends the assignments of all members."""

        def refuse(code: ErrorCode) -> SyncGroupResponse:
            return SyncGroupResponse(error_code=group_error(code))

        return self._to_member(
            request.group_id,
            lambda shard: consumers.sync(shard, request),
            lambda waiter: Sync(waiter, request),
            refuse,
        )

    def heartbeat(self, request: HeartbeatRequest) -> Reply[HeartbeatResponse]:
        """Keep a membership alive; the response is immediate."""

        def refuse(code: ErrorCode) -> HeartbeatResponse:
            if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                # The session starts when the group is loaded: nothing is wrong with the member.
                return HeartbeatResponse()
            return HeartbeatResponse(error_code=group_error(code))

        return self._to_member(
            request.group_id,
            lambda shard: consumers.classic_heartbeat(shard, request),
            lambda waiter: Heartbeat(waiter, request),
            refuse,
        )

    def leave_group(self, request: LeaveGroupRequest) -> Reply[LeaveGroupResponse]:
        """Remove members; the request names its members as version 3 does."""

        def refuse(code: ErrorCode) -> LeaveGroupResponse:
            if code is not ErrorCode.UNKNOWN_MEMBER_ID:
                return LeaveGroupResponse(error_code=group_error(code))
            return LeaveGroupResponse(
                members=[
                    MemberResponse(
                        member_id=identity.member_id,
                        group_instance_id=identity.group_instance_id,
                        error_code=code,
                    )
                    for identity in request.members
                ]
            )

        return self._to_member(
            request.group_id,
            lambda shard: consumers.leave(shard, request),
            lambda waiter: Leave(waiter, request),
            refuse,
        )

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, *, api_version: int, client: Client
    ) -> Reply[ConsumerGroupHeartbeatResponse]:
        """Join, leave, or report the owned partitions and return the assignment (KIP-848)."""

        def refuse(code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
            return consumers.refused(ApiError(group_error(code)))

        settings = self._settings().consumer
        try:
            heartbeat.check(request, api_version, settings.assignors)
        except ApiError as error:
            return consumers.refused(error)
        request.member_id = request.member_id or uuid_text(random_uuid(self._rng))
        shard = self._find_shard(request.group_id)
        if isinstance(shard, ErrorCode):
            return refuse(shard)
        return decide_on(
            shard.host, shard, lambda shard: consumers.decide(shard, request, client), refuse
        )

    def _to_member(
        self,
        group_id: str,
        decide: Callable[[GroupShard], Decision[R]],
        event: Callable[[Waiter[R]], Event],
        refuse: Callable[[ErrorCode], R],
    ) -> Reply[R]:
        """Serve a request of a member: `decide` for the consumer protocol, `event` for the classic."""
        shard = self._find_shard(group_id) if group_id else ErrorCode.INVALID_GROUP_ID
        if isinstance(shard, ErrorCode):
            return refuse(shard)
        if _uses_consumer_protocol(shard, group_id):
            return decide_on(shard.host, shard, decide, refuse)
        waiter: Waiter[R] = Waiter()
        if not shard.feed(group_id, event(waiter)):
            return refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        return waiter.reply()


def _uses_consumer_protocol(
    shard: GroupShard, group_id: str, *, replaces_empty: bool = False
) -> bool:
    """Return True if a group uses the consumer protocol.

    With `replaces_empty` a group without members is deleted, so that a classic one can be created,
    and the result is False.
    """
    group = shard.consumers.get(group_id)
    if group is None:
        return False
    return bool(group.members) or not (replaces_empty and shard.end_empty(group))
