"""The checks of members of consumer groups (KIP-848), which name topics in several ways."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import TopicImage
from ottla.security.acls import AclOperation, ResourceType
from ottla.server.authorization import groups
from ottla.server.authorization.access import Access
from ottla.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

OPEN, CLOSED = b"o" * 16, b"c" * 16


def rights() -> Access:
    """Return the rights of a member that may use every group, and only the topic `open`."""

    def shows(_kind: ResourceType, name: str) -> bool:
        return name == "open"

    def require(_operation: AclOperation, kind: ResourceType, name: str) -> None:
        if kind == ResourceType.TOPIC and name != "open":
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    image = SimpleNamespace(
        topics=dict.fromkeys(("open", "closed"), cast(TopicImage, None)),
        topic_names={OPEN: "open", CLOSED: "closed"},
    )
    access = SimpleNamespace(
        image=image, shows=shows, require=require, may=lambda *_: True, version=1
    )
    return cast(Access, access)


def heartbeat(**fields: Any) -> Any:
    """Return the verdict about the heartbeat of a member."""
    request = ConsumerGroupHeartbeatRequest(group_id="g", **fields)
    return groups.check_consumer_heartbeat(rights(), request)


def test_subscription_names_only_topics_that_the_member_may_describe() -> None:
    """The whole heartbeat is refused."""
    assert heartbeat(subscribed_topic_names=["open"]) is None
    with pytest.raises(ApiError) as error:
        heartbeat(subscribed_topic_names=["open", "closed"])
    assert error.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_expression_may_match_a_hidden_topic() -> None:
    """The coordinator leaves that topic out, as in Kafka."""
    assert heartbeat(subscribed_topic_names=None, subscribed_topic_regex=".*") is None


def test_description_hides_the_members_of_hidden_topics() -> None:
    """The group has an error, as in Kafka."""
    described = [
        DescribedGroup(
            group_id=name,
            members=[
                Member(
                    assignment=Assignment(
                        topic_partitions=[TopicPartitions(topic_id=bytes(16), topic_name=name)]
                    ),
                    target_assignment=Assignment(topic_partitions=[]),
                )
            ],
        )
        for name in ("open", "closed")
    ]
    request = ConsumerGroupDescribeRequest(group_ids=["open", "closed"])
    complete = groups.check_consumer_describe(rights(), request)
    visible, hidden = complete(ConsumerGroupDescribeResponse(groups=described)).groups
    assert (visible.error_code, len(visible.members)) == (0, 1)
    assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
