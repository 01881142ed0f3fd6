"""OffsetCommit (key 8), versions 2-10: store the offsets of a group.

v2-v4: retention time, stored with the offset. v6: leader epoch (KIP-320). v7: static members
(KIP-345). v8: flexible. v9: GROUP_ID_NOT_FOUND. v10: topic ids (KIP-848).

Not done: nothing.
"""

from ottla.base.errors import ErrorCode
from ottla.cluster.image import ClusterImage, TopicImage
from ottla.coordinators.replies import Reply, shaped
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.schema import first_version

API = ApiKey.OFFSET_COMMIT
MIN_VERSION = 2
MAX_VERSION = 10

_FIRST_VERSION_WITH_TOPIC_IDS = first_version(OffsetCommitRequestTopic, "topic_id")


def handle(context: RequestContext, request: OffsetCommitRequest) -> Reply[OffsetCommitResponse]:
    """Refuse partitions that do not exist, and pass the others to the group's coordinator."""
    image = context.broker.image
    has_ids = context.api_version >= _FIRST_VERSION_WITH_TOPIC_IDS
    existing: list[OffsetCommitRequestTopic] = []
    refused: list[OffsetCommitResponseTopic] = []
    for topic in request.topics:
        known_topic = _find(image, topic, has_ids=has_ids)
        if known_topic is None:
            unknown_id = ErrorCode.UNKNOWN_TOPIC_ID
            code = unknown_id if has_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(_refuse(topic, _indexes(topic), code))
            continue
        topic.name = known_topic.name
        missing = [index for index in _indexes(topic) if known_topic.partition(index) is None]
        if missing:
            refused.append(_refuse(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            missing_numbers = set(missing)
            topic.partitions = [
                partition
                for partition in topic.partitions
                if partition.partition_index not in missing_numbers
            ]
        if topic.partitions:
            existing.append(topic)
    if not existing and refused:
        return OffsetCommitResponse(topics=refused)
    request.topics = existing
    reply = context.broker.groups.commit_offsets(request, api_version=context.api_version)
    return shaped(reply, lambda response: _merged(response, refused)) if refused else reply


def _find(
    image: ClusterImage, topic: OffsetCommitRequestTopic, *, has_ids: bool
) -> TopicImage | None:
    return image.topic_by_id(topic.topic_id) if has_ids else image.topic(topic.name)


def _indexes(topic: OffsetCommitRequestTopic) -> list[int]:
    return [partition.partition_index for partition in topic.partitions]


def _refuse(
    topic: OffsetCommitRequestTopic, partitions: list[int], code: ErrorCode
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=index, error_code=code)
            for index in partitions
        ],
    )


def _merged(
    response: OffsetCommitResponse, refused: list[OffsetCommitResponseTopic]
) -> OffsetCommitResponse:
    """Add the refused partitions; a topic is named once, because Java uses only its last entry."""
    by_topic = {(topic.name, topic.topic_id): topic for topic in response.topics}
    for topic in refused:
        merged = by_topic.get((topic.name, topic.topic_id))
        if merged is None:
            response.topics.append(topic)
        else:
            merged.partitions.extend(topic.partitions)
    return response
