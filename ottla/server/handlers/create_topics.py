"""CreateTopics (key 19), versions 2-7: create topics by size or by replica assignment.

v4: -1 takes num.partitions and default.replication.factor (KIP-464). v5: flexible; size and
settings in the response (KIP-525). v6: may be throttled (KIP-599). v7: topic id.

The response is sent when the leaders have been elected. A timeout of 0 or less creates nothing.

If a client has exceeded its quota of mutations, it gets THROTTLING_QUOTA_EXCEEDED from v6 on;
before v6 it is throttled.

Not done: nothing.
"""

from collections import Counter
from collections.abc import Mapping

from ottla.base.errors import ApiError, ErrorCode
from ottla.controller.planning.creation import PARTITIONS_MAX
from ottla.controller.planning.requests import TopicRequest, TopicResult
from ottla.server.api_properties import ApiProperties
from ottla.server.config.store import ConfigStore, Described
from ottla.server.context import RequestContext
from ottla.server.quotas import mutations
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.schema import first_version

API = ApiKey.CREATE_TOPICS
MIN_VERSION = 2
MAX_VERSION = 7

_BY_DEFAULT = -1
_FIRST_VERSION_WITH_CONFIGS = first_version(CreatableTopicResult, "configs")
_FIRST_STRICT_VERSION = 6


def refuse_too_many(
    request: CreateTopicsRequest, context: RequestContext
) -> CreateTopicsResponse | None:
    """Refuse all topics if they have too many partitions together, as in KRaft; otherwise None.

    The result depends on the request only: the sender needs no right for it.
    """
    count = 0
    for topic in request.topics:
        if topic.assignments:
            count += len(topic.assignments)
        elif topic.num_partitions == _BY_DEFAULT:
            count += context.broker.options.integer("num.partitions")
        else:
            count += max(0, topic.num_partitions)
    if count <= PARTITIONS_MAX:
        return None
    error = ApiError(
        ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
    )
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreateTopicsResponse(topics=[_failure(name, error) for name in names])


PROPERTIES = ApiProperties(is_administrative=True, prepare=refuse_too_many)


async def handle(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Have the controller create the topics that are named once; a duplicate name is refused."""
    refusal = refuse_too_many(request, context)
    if refusal is not None:
        return refusal
    occurrences = Counter(topic.name for topic in request.topics)
    requested = {topic.name: topic for topic in request.topics if occurrences[topic.name] == 1}
    results = {
        name: _failure(name, ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
        for name, count in occurrences.items()
        if count > 1
    }
    if requested:
        results |= await _create(context, request, requested)
    return CreateTopicsResponse(topics=[results[name] for name in occurrences])


async def _create(
    context: RequestContext, request: CreateTopicsRequest, requested: dict[str, CreatableTopic]
) -> dict[str, CreatableTopicResult]:
    try:
        results = await context.broker.controller.create_topics(
            [_topic_request(topic) for topic in requested.values()],
            validate_only=request.validate_only,
            timeout_ms=request.timeout_ms,
            admit=mutations.admission(context, strict_since=_FIRST_STRICT_VERSION),
        )
    except ApiError as error:
        return {name: _failure(name, error) for name in requested}
    with_configs = context.api_version >= _FIRST_VERSION_WITH_CONFIGS
    described = _Descriptions(context.broker.configs) if with_configs else None
    return {result.name: _answer(result, described) for result in results}


def _topic_request(topic: CreatableTopic) -> TopicRequest:
    return TopicRequest(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple(
            (assignment.partition_index, tuple(assignment.broker_ids))
            for assignment in topic.assignments
        ),
        # If a setting is named twice, the last value counts.
        config={config.name: config.value for config in topic.configs},
    )


class _Descriptions:
    """The descriptions of the settings of new topics; most topics have the same ones."""

    def __init__(self, configs: ConfigStore) -> None:
        self._configs = configs
        self._known: dict[frozenset[tuple[str, str]], list[CreatableTopicConfigs]] = {}

    def of(self, settings: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        """Return the description of a topic with these settings."""
        key = frozenset(settings.items())
        if key not in self._known:
            described = self._configs.describe_settings(settings)
            self._known[key] = [_config(setting) for setting in described]
        return self._known[key]


def _answer(result: TopicResult, described: _Descriptions | None) -> CreatableTopicResult:
    if result.error is not None:
        return _failure(result.name, result.error)
    return CreatableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_message=None,
        num_partitions=result.partitions,
        replication_factor=result.replication_factor,
        configs=[] if described is None else described.of(result.config),
    )


def _config(described: Described) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(
        name=described.row.name,
        value=described.value,
        read_only=described.is_read_only,
        config_source=int(described.source),
        is_sensitive=described.row.sensitive,
    )


def _failure(name: str, error: ApiError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=int(error.code), error_message=error.message)
