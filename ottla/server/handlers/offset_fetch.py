"""OffsetFetch (key 9), versions 1-10: read the stored offsets of groups.

v2: all topics, error of the group. v5: leader epoch (KIP-320). v6: flexible. v7: require_stable
(KIP-447). v8: several groups (KIP-709). v9: member id and epoch, which classic groups do not check.
v10: topic ids (KIP-848).

Not done: nothing.
"""

from collections.abc import Callable

from ottla.base.errors import ErrorCode
from ottla.cluster.image import ClusterImage
from ottla.coordinators.replies import Reply, gathered, shaped
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ottla.wire.schema import first_version

API = ApiKey.OFFSET_FETCH
MIN_VERSION = 1
MAX_VERSION = 10

_FIRST_VERSION_WITH_ERROR = first_version(OffsetFetchResponse, "error_code")
_FIRST_VERSION_WITH_GROUPS = first_version(OffsetFetchRequest, "groups")
_FIRST_VERSION_WITH_TOPIC_IDS = first_version(OffsetFetchRequestTopics, "topic_id")


def handle(context: RequestContext, request: OffsetFetchRequest) -> Reply[OffsetFetchResponse]:
    """Ask the coordinator of the groups, one group at a time."""
    if context.api_version < _FIRST_VERSION_WITH_GROUPS:
        group = _as_group(request)
        shape = _shape_of_one(context.api_version, group)
        return shaped(_fetch(context, group, request.require_stable), shape)
    replies = [_fetch(context, group, request.require_stable) for group in request.groups]
    return gathered(replies, lambda groups: OffsetFetchResponse(groups=groups))


def _fetch(
    context: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool
) -> Reply[OffsetFetchResponseGroup]:
    groups = context.broker.groups
    if context.api_version < _FIRST_VERSION_WITH_TOPIC_IDS:
        return groups.fetch_offsets(group, require_stable=require_stable)
    image = context.broker.image
    unknown: list[OffsetFetchResponseTopics] = []
    if group.topics is not None:
        unknown = _name_topics(image, group)
    reply = groups.fetch_offsets(group, require_stable=require_stable)
    return shaped(reply, lambda response: _with_ids(image, response, unknown))


def _name_topics(
    image: ClusterImage, group: OffsetFetchRequestGroup
) -> list[OffsetFetchResponseTopics]:
    """Set the names of topics given by id; return the results for unknown ids."""
    existing: list[OffsetFetchRequestTopics] = []
    unknown: list[OffsetFetchResponseTopics] = []
    for topic in group.topics or ():
        known_topic = image.topic_by_id(topic.topic_id)
        if known_topic is not None:
            topic.name = known_topic.name
            existing.append(topic)
            continue
        partitions = [
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=-1,
                metadata="",
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
            )
            for index in topic.partition_indexes
        ]
        unknown.append(OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=partitions))
    group.topics = existing
    return unknown


def _with_ids(
    image: ClusterImage,
    response: OffsetFetchResponseGroup,
    unknown: list[OffsetFetchResponseTopics],
) -> OffsetFetchResponseGroup:
    """Set the ids of topics given by name; a deleted topic has no id and is left out."""
    topics_with_ids = []
    for topic in response.topics:
        known_topic = image.topic(topic.name)
        if known_topic is not None:
            topic.topic_id = known_topic.topic_id
            topics_with_ids.append(topic)
    response.topics = topics_with_ids if response.error_code else [*topics_with_ids, *unknown]
    return response


def _as_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _shape_of_one(
    api_version: int, request: OffsetFetchRequestGroup
) -> Callable[[OffsetFetchResponseGroup], OffsetFetchResponse]:
    def shape(response: OffsetFetchResponseGroup) -> OffsetFetchResponse:
        if response.error_code and api_version < _FIRST_VERSION_WITH_ERROR:
            return OffsetFetchResponse(topics=_error_everywhere(request, response.error_code))
        topics = [
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[_plain(partition) for partition in topic.partitions],
            )
            for topic in response.topics
        ]
        return OffsetFetchResponse(error_code=response.error_code, topics=topics)

    return shape


def _plain(partition: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=partition.partition_index,
        committed_offset=partition.committed_offset,
        committed_leader_epoch=partition.committed_leader_epoch,
        metadata=partition.metadata,
        error_code=partition.error_code,
    )


def _error_everywhere(
    request: OffsetFetchRequestGroup, code: int
) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=-1, metadata="", error_code=code
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics or ()
    ]
