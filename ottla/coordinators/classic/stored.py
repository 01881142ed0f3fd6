"""The metadata record of a group, which survives the broker.

One record is written at each end of a rebalance: generation, leader, members, their subscriptions
and assignments. Follows GroupMetadataValue, which Kafka writes in version 3 by default.
"""

from collections.abc import Mapping

from ottla.coordinators.classic.state import NO_TIMESTAMP, Group, GroupState, Member
from ottla.wire.group_records import GroupMetadataValue, MemberMetadata


def metadata_value(group: Group, assignments: Mapping[str, bytes]) -> GroupMetadataValue:
    """Return the record's value for the group with these assignments by member id."""
    members = []
    for member in group.members.values():
        assert group.protocol_name is not None
        members.append(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.protocols[group.protocol_name],
                assignment=assignments[member.member_id],
            )
        )
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader,
        current_state_timestamp=group.state_since_ms,
        members=members,
    )


def group_from(group_id: str, value: GroupMetadataValue) -> Group:
    """Return the group in a record: Stable with its members, or Empty without members."""
    group = Group(
        group_id=group_id,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        state_since_ms=max(value.current_state_timestamp, NO_TIMESTAMP),
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
    )
    for stored in value.members:
        # Version 0 of the record has no rebalance timeout.
        is_old = stored.rebalance_timeout < 0
        rebalance_timeout_ms = stored.session_timeout if is_old else stored.rebalance_timeout
        group.add(
            Member(
                member_id=stored.member_id,
                group_instance_id=stored.group_instance_id,
                client_id=stored.client_id,
                client_host=stored.client_host,
                session_timeout_ms=stored.session_timeout,
                rebalance_timeout_ms=rebalance_timeout_ms,
                protocols={value.protocol or "": bytes(stored.subscription)},
                assignment=bytes(stored.assignment),
            )
        )
    # None until a group that was of the consumer protocol has rebalanced.
    group.leader = value.leader
    group.learn_subscribed_topics()
    return group
