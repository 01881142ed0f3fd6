"""ConsumerGroupHeartbeat: join, leave, report owned partitions, and receive the assignment.

Follows GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid and
GroupMetadataManager.consumerGroupHeartbeat.
"""

from dataclasses import replace

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.consumer.assignment import epochs
from ottla.coordinators.consumer.regex import regexes
from ottla.coordinators.consumer.regex.regexes import RegexUpdate
from ottla.coordinators.consumer.requests.joining import check_room, member_of
from ottla.coordinators.consumer.state import (
    AWAY_EPOCH,
    JOINING_EPOCH,
    LEAVING_EPOCH,
    CurrentAssignment,
    Member,
)
from ottla.coordinators.consumer.transition import Client, Deadline, Transition
from ottla.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

# KIP-1082: from this version on the member generates its own id.
OWN_ID_VERSION = 1


def check(
    request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: tuple[str, ...]
) -> None:
    """Raise ApiError for a request that is invalid for every group."""
    needs_id = api_version >= OWN_ID_VERSION or request.member_epoch > 0
    if needs_id or request.member_epoch == LEAVING_EPOCH:
        _check_text(request.member_id, "MemberId")
    _check_text(request.group_id, "GroupId")
    _check_text(request.instance_id, "InstanceId")
    _check_text(request.rack_id, "RackId")
    if request.member_epoch == JOINING_EPOCH:
        _check_join(request)
    elif request.member_epoch == AWAY_EPOCH:
        if request.instance_id is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, "InstanceId can't be null.")
    elif request.member_epoch < AWAY_EPOCH:
        raise ApiError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def _check_text(text: str | None, name: str) -> None:
    # Trimmed as in Java: blank counts as empty.
    if text is not None and not text.strip():
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    problem = None
    if request.rebalance_timeout_ms == -1:
        problem = "RebalanceTimeoutMs must be provided in first request."
    elif request.topic_partitions is None or request.topic_partitions:
        problem = "TopicPartitions must be empty when (re-)joining."
    elif request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        problem = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)


def heartbeat(
    transition: Transition,
    request: ConsumerGroupHeartbeatRequest,
    client: Client,
    *,
    is_looking_up: bool,
) -> ConsumerGroupHeartbeatResponse:
    """Handle a heartbeat of a known or joining member; `request` contains a member id.

    `is_looking_up` is True if a lookup of the group's regular expressions is already running.
    """
    check_room(transition, request.member_id, request.instance_id)
    transition.may_describe = client.may_describe
    old = member_of(transition, request)
    member = _updated(old, request, client)
    has_new_names = epochs.store_member(transition, old, member)
    regex = regexes.update(transition, old, member, is_looking_up=is_looking_up)
    must_bump = has_new_names or regex is RegexUpdate.CHANGED_AND_KNOWN
    epoch = epochs.update_epoch(transition, member, must_bump=must_bump)
    goal = epochs.update_target(transition, member, epoch)
    stepped = epochs.reconcile(
        transition,
        member,
        goal,
        request.topic_partitions,
        has_new_subscription=has_new_names or regex is not RegexUpdate.NONE,
    )
    transition.set_timer(
        Deadline.SESSION, stepped.member_id, transition.settings.session_timeout_ms
    )
    has_news = stepped.assigned != old.assigned
    tells = request.member_epoch == JOINING_EPOCH or _is_full(request) or has_news
    return ConsumerGroupHeartbeatResponse(
        member_id=stepped.member_id,
        member_epoch=stepped.epoch,
        heartbeat_interval_ms=transition.settings.heartbeat_interval_ms,
        assignment=_assignment(stepped.assigned) if tells else None,
    )


def _updated(member: Member, request: ConsumerGroupHeartbeatRequest, client: Client) -> Member:
    """Return the member updated from the request; absent fields keep their values."""
    names = request.subscribed_topic_names
    regex = request.subscribed_topic_regex
    has_timeout = request.rebalance_timeout_ms != -1
    return replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id or member.rack_id,
        rebalance_timeout_ms=(
            request.rebalance_timeout_ms if has_timeout else member.rebalance_timeout_ms
        ),
        server_assignor=request.server_assignor or member.server_assignor,
        subscribed_topics=member.subscribed_topics if names is None else frozenset(names),
        subscribed_regex=member.subscribed_regex if regex is None else regex,
        client_id=client.client_id,
        client_host=client.client_host,
        classic=None,
    )


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return True if the request is full, as sent by a member that is unsure of its state."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    has_subscription = names is not None or regex is not None
    has_owned = request.topic_partitions is not None
    return request.rebalance_timeout_ms != -1 and has_subscription and has_owned


def _assignment(assigned: CurrentAssignment) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )
