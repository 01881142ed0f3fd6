"""The checks of APIs that describe and change topics."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.base.uuids import ZERO_UUID
from ottla.cluster.names import is_internal
from ottla.security.acls import AclOperation, ResourceType
from ottla.server.authorization.access import Access
from ottla.server.authorization.guarding import Verdict
from ottla.wire.messages import (
    create_partitions,
    create_topics,
    delete_topics,
    describe_topic_partitions,
    metadata,
)
from ottla.wire.schema import first_version, first_version_with_null

_FAILED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
_FIRST_VERSION_WITH_IDS = first_version_with_null(metadata.MetadataResponseTopic, "name")
_FIRST_VERSION_WITH_NULL = first_version_with_null(metadata.MetadataRequest, "topics")
_FIRST_VERSION_WITH_STATES = first_version(delete_topics.DeleteTopicsRequest, "topics")
_REASON = "The topic authorization is failed."


def check_metadata(access: Access, request: metadata.MetadataRequest) -> Verdict:
    """Hide topics from a list of all, and refuse others by name or id: DESCRIBE, and CREATE for
    topics that the request would create.
    """
    requested = request.topics
    if requested is None or (not requested and access.version < _FIRST_VERSION_WITH_NULL):
        return lambda response: _described_only(access, response)
    has_ids = any(topic.topic_id != ZERO_UUID for topic in requested)
    if has_ids and access.version < _FIRST_VERSION_WITH_IDS:
        # The handler refuses the request.
        return None
    if has_ids:
        requested = [topic for topic in requested if topic.topic_id != ZERO_UUID]
    allowed: list[metadata.MetadataRequestTopic] = []
    refused: dict[Any, metadata.MetadataResponseTopic] = {}
    for topic in requested:
        row = _by_id(access, topic) if has_ids else _by_name(access, request, topic.name or "")
        if row is None:
            allowed.append(topic)
        else:
            refused[row.name, row.topic_id] = row
    if not refused:
        return None
    request.topics = allowed
    is_all = not allowed and access.version < _FIRST_VERSION_WITH_NULL

    def complete(response: metadata.MetadataResponse) -> metadata.MetadataResponse:
        # An empty list of topics means all of them in version 0.
        response.topics = [*([] if is_all else response.topics), *refused.values()]
        return response

    return complete


def _described_only(
    access: Access, response: metadata.MetadataResponse
) -> metadata.MetadataResponse:
    response.topics = [
        topic
        for topic in response.topics
        if topic.name is None or access.shows(ResourceType.TOPIC, topic.name)
    ]
    return response


def _by_id(
    access: Access, topic: metadata.MetadataRequestTopic
) -> metadata.MetadataResponseTopic | None:
    name = access.image.topic_names.get(topic.topic_id)
    if name is None or access.may_topic(AclOperation.DESCRIBE, name):
        return None
    return metadata.MetadataResponseTopic(error_code=_FAILED, name=None, topic_id=topic.topic_id)


def _by_name(
    access: Access, request: metadata.MetadataRequest, name: str
) -> metadata.MetadataResponseTopic | None:
    if not access.may_topic(AclOperation.DESCRIBE, name):
        return metadata.MetadataResponseTopic(error_code=_FAILED, name=name)
    is_to_create = (
        request.allow_auto_topic_creation
        and name not in access.image.topics
        and access.creates_topics
    )
    if is_to_create and not _may_create(access, name):
        return metadata.MetadataResponseTopic(
            error_code=_FAILED, name=name, is_internal=is_internal(name)
        )
    return None


def _may_create(access: Access, name: str) -> bool:
    return access.has_cluster_right(AclOperation.CREATE) or access.may_topic(
        AclOperation.CREATE, name
    )


def check_topic_partitions(
    access: Access, request: describe_topic_partitions.DescribeTopicPartitionsRequest
) -> Verdict:
    """Hide topics from a list of all, and refuse others: DESCRIBE."""
    rows = describe_topic_partitions
    names = [topic.name for topic in request.topics] or list(access.image.topics)
    allowed = [name for name in names if access.shows(ResourceType.TOPIC, name)]
    if len(allowed) == len(names):
        return None
    refused = [
        rows.DescribeTopicPartitionsResponseTopic(error_code=_FAILED, name=topic.name)
        for topic in request.topics
        if not access.may_topic(AclOperation.DESCRIBE, topic.name)
    ]
    request.topics = [rows.TopicRequest(name=name) for name in allowed]
    if not allowed:
        # Without topics the request means all.
        return rows.DescribeTopicPartitionsResponse(topics=refused)

    def complete(
        response: rows.DescribeTopicPartitionsResponse,
    ) -> rows.DescribeTopicPartitionsResponse:
        response.topics += refused
        return response

    return complete


def _named_once(names: Iterable[str]) -> set[str]:
    """Return the names that occur once; the handlers refuse the others."""
    return {name for name, count in Counter(names).items() if count == 1}


def check_create_topics(access: Access, request: create_topics.CreateTopicsRequest) -> Verdict:
    """Refuse topics that the sender may not create, and hide the settings of the others."""
    may_create_all = access.has_cluster_right(AclOperation.CREATE)
    once = _named_once(topic.name for topic in request.topics)
    refused = [
        create_topics.CreatableTopicResult(
            name=name, error_code=_FAILED, error_message="Authorization failed.", configs=[]
        )
        for name in (topic.name for topic in request.topics if topic.name in once)
        if not may_create_all and not access.may_topic(AclOperation.CREATE, name)
    ]
    names = {row.name for row in refused}
    request.topics = [topic for topic in request.topics if topic.name not in names]

    def complete(
        response: create_topics.CreateTopicsResponse,
    ) -> create_topics.CreateTopicsResponse:
        for topic in response.topics:
            is_hidden = not topic.error_code and not _may_see_settings(access, topic.name)
            if is_hidden:
                topic.topic_config_error_code = _FAILED
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = []
        response.topics += refused
        return response

    return complete if request.topics else complete(create_topics.CreateTopicsResponse())


def _may_see_settings(access: Access, name: str) -> bool:
    return access.shows(ResourceType.TOPIC, name, AclOperation.DESCRIBE_CONFIGS)


def check_create_partitions(
    access: Access, request: create_partitions.CreatePartitionsRequest
) -> Verdict:
    """Refuse topics that the sender may not alter."""
    once = _named_once(topic.name for topic in request.topics)
    refused = [
        create_partitions.CreatePartitionsTopicResult(
            name=topic.name, error_code=_FAILED, error_message=_REASON
        )
        for topic in request.topics
        if topic.name in once and not access.may_topic(AclOperation.ALTER, topic.name)
    ]
    if not refused:
        return None
    names = {row.name for row in refused}
    request.topics = [topic for topic in request.topics if topic.name not in names]
    if not request.topics:
        return create_partitions.CreatePartitionsResponse(results=refused)

    def complete(
        response: create_partitions.CreatePartitionsResponse,
    ) -> create_partitions.CreatePartitionsResponse:
        response.results += refused
        return response

    return complete


def check_delete_topics(access: Access, request: delete_topics.DeleteTopicsRequest) -> Verdict:
    """Refuse topics that the sender may not delete; the name of an id needs DESCRIBE."""
    has_states = access.version >= _FIRST_VERSION_WITH_STATES
    states = (
        request.topics
        if has_states
        else [delete_topics.DeleteTopicState(name=name) for name in request.topic_names]
    )
    refused = []
    allowed = []
    for state in states:
        row = _undeletable(access, state)
        if row is None:
            allowed.append(state)
        else:
            refused.append(row)
    if not refused:
        return None
    if not allowed:
        return delete_topics.DeleteTopicsResponse(responses=refused)
    request.topics = allowed if has_states else []
    request.topic_names = [] if has_states else [state.name or "" for state in allowed]

    def complete(
        response: delete_topics.DeleteTopicsResponse,
    ) -> delete_topics.DeleteTopicsResponse:
        response.responses += refused
        return response

    return complete


def _undeletable(
    access: Access, state: delete_topics.DeleteTopicState
) -> delete_topics.DeletableTopicResult | None:
    has_id = state.topic_id != ZERO_UUID
    if has_id == (state.name is not None):
        # The handler refuses an entry with both or neither.
        return None
    name = access.image.topic_names.get(state.topic_id) if has_id else state.name
    if name is None:
        return None
    row = delete_topics.DeletableTopicResult(
        name=name, topic_id=state.topic_id, error_code=_FAILED, error_message=_REASON
    )
    if has_id and not access.may_topic(AclOperation.DESCRIBE, name):
        row.name = None
        return row
    return None if access.may_topic(AclOperation.DELETE, name) else row
