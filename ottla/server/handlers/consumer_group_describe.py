"""ConsumerGroupDescribe (key 69), versions 0-1: groups of the consumer protocol and their members.

KIP-848. v1: whether a member uses the classic or the consumer protocol (KIP-1099). For groups of
another protocol the response is GROUP_ID_NOT_FOUND.

Not done: nothing.
"""

from ottla.base.errors import ErrorCode
from ottla.cluster.features import GROUP_VERSION
from ottla.coordinators.replies import Reply, gathered
from ottla.server import operations
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

API = ApiKey.CONSUMER_GROUP_DESCRIBE
MIN_VERSION = 0
MAX_VERSION = 1


def handle(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> Reply[ConsumerGroupDescribeResponse]:
    """Ask the coordinator of the groups, one group at a time, and about each group once.

    As in Kafka, a group that is named twice has two rows.
    """
    groups, group_ids = context.broker.groups, dict.fromkeys(request.group_ids)
    is_on = context.broker.features.level(GROUP_VERSION) > 0
    if not is_on or not groups.settings().consumer.is_enabled:
        code = ErrorCode.UNSUPPORTED_VERSION
        return ConsumerGroupDescribeResponse(
            groups=[
                DescribedGroup(group_id=group_id, error_code=code) for group_id in request.group_ids
            ]
        )
    replies = [groups.describe_consumer_group(group_id) for group_id in group_ids]
    has_operations = request.include_authorized_operations

    def shape(groups: list[DescribedGroup]) -> ConsumerGroupDescribeResponse:
        for group in groups:
            if has_operations and group.error_code == ErrorCode.NONE:
                group.authorized_operations = operations.on_group(context.access, group.group_id)
        rows = dict(zip(group_ids, groups, strict=True))
        return ConsumerGroupDescribeResponse(groups=[rows[name] for name in request.group_ids])

    return gathered(replies, shape)
