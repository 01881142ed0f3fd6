"""OffsetDelete (key 47), version 0: delete offsets of a group, partition by partition (KIP-496).

Not done: nothing.
"""

from ottla.base.errors import ErrorCode
from ottla.cluster.image import ClusterImage
from ottla.coordinators.replies import Reply, shaped
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

API = ApiKey.OFFSET_DELETE
MIN_VERSION = 0
MAX_VERSION = 0
PROPERTIES = ApiProperties(is_administrative=True)


def handle(context: RequestContext, request: OffsetDeleteRequest) -> Reply[OffsetDeleteResponse]:
    """Refuse partitions that do not exist, and pass the others to the group's coordinator."""
    image = context.broker.image
    refused = {topic.name: _missing(image, topic) for topic in request.topics}
    existing = []
    for topic in request.topics:
        missing_numbers = set(refused[topic.name])
        topic.partitions = [
            partition
            for partition in topic.partitions
            if partition.partition_index not in missing_numbers
        ]
        if topic.partitions:
            existing.append(topic)
    request.topics = existing
    reply = context.broker.groups.delete_offsets(request)
    return shaped(reply, lambda response: _merged(response, refused))


def _missing(image: ClusterImage, topic: OffsetDeleteRequestTopic) -> list[int]:
    return [
        partition.partition_index
        for partition in topic.partitions
        if image.partition(topic.name, partition.partition_index) is None
    ]


def _merged(response: OffsetDeleteResponse, refused: dict[str, list[int]]) -> OffsetDeleteResponse:
    """Add the refused partitions, unless the whole request has failed; a topic is named once."""
    if response.error_code:
        return response
    by_name = {topic.name: topic for topic in response.topics}
    for name, partitions in refused.items():
        if not partitions:
            continue
        merged = by_name.get(name)
        if merged is None:
            merged = OffsetDeleteResponseTopic(name=name)
            response.topics.append(merged)
        merged.partitions += [
            OffsetDeleteResponsePartition(
                partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            for index in partitions
        ]
    return response
