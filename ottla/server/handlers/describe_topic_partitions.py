"""DescribeTopicPartitions (key 75), version 0: topics in pages of partitions (KIP-966).

An empty list of topics means all of them. Topics are sorted by name; if a response is full, its
cursor is the start of the next page. Topics that do not exist are not counted, but a page has no
more of them than it may have partitions.

Not done: no replica outside the ISR is known to be eligible as leader, so both lists of such
replicas are empty.
"""

import heapq

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster.image import ClusterImage, PartitionImage
from ottla.cluster.names import is_internal, validate_topic_name
from ottla.server import operations
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)

API = ApiKey.DESCRIBE_TOPIC_PARTITIONS
MIN_VERSION = 0
MAX_VERSION = 0


def _limit(context: RequestContext) -> int:
    return max(1, context.broker.options.integer("max.request.partition.size.limit"))


def prepare(request: DescribeTopicPartitionsRequest, context: RequestContext) -> None:
    """Drop the topics of a large request that cannot be on its page."""
    first = "" if request.cursor is None else request.cursor.topic_name
    names = {topic.name for topic in request.topics if topic.name >= first}
    # Existing ones and others; one more shows that there is another page.
    some = heapq.nsmallest(2 * _limit(context) + 1, names)
    # Without topics the request would mean all of them.
    request.topics = [TopicRequest(name=name) for name in some] or request.topics[:1]


PROPERTIES = ApiProperties(needs_metadata=True, prepare=prepare)


def handle(
    context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Return one page from the cluster image."""
    image, cursor = context.broker.image, request.cursor
    requested = {topic.name for topic in request.topics}
    names = sorted(requested or image.topics)
    if cursor is not None:
        if cursor.partition_index < 0 or (requested and cursor.topic_name not in requested):
            return _refused(request, ErrorCode.INVALID_REQUEST)
        names = [name for name in names if name >= cursor.topic_name]
    limit = _limit(context)
    remaining, others = max(min(limit, request.response_partition_limit), 1), limit
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if remaining == 0 or others == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        begins_here = cursor is not None and cursor.topic_name == name
        first = cursor.partition_index if cursor is not None and begins_here else 0
        topic = _page(context, image, name, range(first, first + remaining))
        response.topics.append(topic)
        remaining -= len(topic.partitions)
        others -= not topic.partitions
        following = first + len(topic.partitions)
        if image.partition(name, following) is not None:
            response.next_cursor = Cursor(topic_name=name, partition_index=following)
            break
    return response


def _refused(
    request: DescribeTopicPartitionsRequest, code: ErrorCode
) -> DescribeTopicPartitionsResponse:
    """Return the response to an invalid cursor: only topics have an error code."""
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=int(code), name=topic.name)
            for topic in request.topics
        ]
    )


def _page(
    context: RequestContext, image: ClusterImage, name: str, numbers: range
) -> DescribeTopicPartitionsResponseTopic:
    described = DescribeTopicPartitionsResponseTopic(
        name=name,
        is_internal=is_internal(name),
        topic_authorized_operations=operations.on_topic(context.access, name),
    )
    topic = image.topic(name)
    if topic is None:
        described.error_code = int(_code_of_missing(name))
        return described
    described.topic_id = topic.topic_id
    described.partitions = [
        _partition(context, image, partition)
        for partition in topic.partitions[numbers.start : numbers.stop]
    ]
    return described


def _code_of_missing(name: str) -> ErrorCode:
    try:
        validate_topic_name(name)
    except ApiError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _partition(
    context: RequestContext, image: ClusterImage, partition: PartitionImage
) -> DescribeTopicPartitionsResponsePartition:
    leader = image.broker(partition.leader)
    is_reachable = leader is not None and context.address_of(leader) is not None
    dead = [replica for replica in partition.replicas if replica not in image.brokers]
    return DescribeTopicPartitionsResponsePartition(
        partition_index=partition.partition,
        leader_id=partition.leader if is_reachable else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        # Java's client fails on null.
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=sorted({*dead, *partition.offline_replicas}),
    )
