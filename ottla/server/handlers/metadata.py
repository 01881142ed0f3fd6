"""Metadata (key 3), versions 0-13: brokers, topics, leaders; creates topics on first use.

v0: an empty list means all topics. v1: null means all; controller, racks. v2: cluster id. v4: the
client may forbid creation (KIP-204). v5: offline replicas. v7: leader epochs. v8-v10: authorized
operations (KIP-430). v9: flexible. v10: topic ids (KIP-516). v12: topics by id. v13: error code.

The broker is advertised at the address that the client connected to, unless `advertised.listeners`
is set. A plain response depends only on the image and the request, so dispatch may cache it.

When the controller's process has just ended, the response waits until its successor is known,
because librdkafka sends administrative requests to the controller of its first response even if
that one is dead, until they time out. A response that names a leader whose connections have just
been lost waits in the same way: clients ask as soon as they lose the leader, and after a response
with the old one librdkafka asks again only up to two seconds later.

A broker that is no longer registered is listed for two more seconds, because librdkafka removes a
broker that is not listed (`rd_kafka_broker_decommission`), and in the middle of a fail-over that
harms: it may forget the new leader of a partition for a second; a consumer whose first request for
metadata reaches that broker never joins its group; and its main thread and its broker thread
may wait for each other's locks for ever (`rd_kafka_toppar_handle_OffsetForLeaderEpoch`).

Not done: nothing.
"""

import asyncio
from collections.abc import Iterable

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.uuids import ZERO_UUID
from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.cluster.names import is_internal, validate_topic_name
from ottla.net.admission.origins import origin_of
from ottla.server import operations
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.server.quotas import mutations
from ottla.server.quotas.steps import counted
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.schema import first_version_with_null

API = ApiKey.METADATA
MIN_VERSION = 0
MAX_VERSION = 13
# A list of all topics with more partitions is made in slices; responses that large are not cached.
PARTITIONS_AT_ONCE = 10_000
_TOPICS_AT_ONCE = 100
# How long a request waits for the topic that it creates, in seconds; Kafka responds at once and its
# clients ask again.
_CREATION_SECONDS = 5.0
# How long responses wait for another controller or leader after the connection to it was lost, in
# seconds: there is a successor within 0.1 s. Between two looks for it.
_SUCCESSION_SECONDS = 1.0
_LOOK_SECONDS = 0.005
_FIRST_VERSION_WITH_NULL = first_version_with_null(MetadataRequest, "topics")
_FIRST_VERSION_WITH_LISTENER_NOT_FOUND = 6
_FIRST_VERSION_WITH_IDS = first_version_with_null(MetadataResponseTopic, "name")


def prepare(request: MetadataRequest, context: RequestContext) -> None:
    """Drop the names of a large request that has ids: its parts may not have both."""
    if request.topics and context.api_version >= _FIRST_VERSION_WITH_IDS:
        request.topics = _wanted(request.topics)


PROPERTIES = ApiProperties(is_cached=True, needs_metadata=True, prepare=prepare)


def handle(
    context: RequestContext, request: MetadataRequest
) -> "MetadataResponse | asyncio.Future[MetadataResponse]":
    """Return the metadata of the cluster image.

    Returns a future if a topic has to be created first, or another controller or leader is about to
    be known.
    """
    if request.topics:
        if context.api_version < _FIRST_VERSION_WITH_IDS and not _has_names_only(request.topics):
            return _refusal(request.topics)
        request.topics = _wanted(request.topics)
    missing = _topics_to_create(context, request)
    if missing:
        work = _create_and_answer(context, request, missing)
        work = counted(work, context.usage, context.broker.clock)
        return context.broker.tasks.spawn(work, f"create {', '.join(missing)}")
    if _is_about_to_change(context, request):
        answer = _answer_later(context, request)
        work = counted(answer, context.usage, context.broker.clock)
        return context.broker.tasks.spawn(work, "metadata without a controller or leader")
    if _is_vast(context, request):
        work = _answer_in_slices(context, request)
        work = counted(work, context.usage, context.broker.clock)
        return context.broker.tasks.spawn(work, "metadata of all topics")
    return _answer(context, request, {})


def _is_for_all(context: RequestContext, request: MetadataRequest) -> bool:
    """Return True if the request is for all topics."""
    topics = request.topics
    return topics is None or (not topics and context.api_version < _FIRST_VERSION_WITH_NULL)


def _is_vast(context: RequestContext, request: MetadataRequest) -> bool:
    """Return True if the response has more partitions than can be described at once."""
    if not _is_for_all(context, request):
        return False
    topics = context.broker.image.topics.values()
    return sum(len(topic.partitions) for topic in topics) > PARTITIONS_AT_ONCE


async def _answer_in_slices(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """Describe all topics of one image, a few at a time."""
    image, version = context.broker.image, context.api_version
    origin = origin_of(context.connection.peer_address[0])
    async with context.broker.lane.work(origin, is_urgent=True) as turn:
        response, reachable = _head(context, request)
        topics = list(image.topics.values())
        for start in range(0, len(topics), _TOPICS_AT_ONCE):
            some = topics[start : start + _TOPICS_AT_ONCE]
            rows = [_topic(topic, image, reachable, version) for topic in some]
            _add_operations(context, request, rows)
            response.topics += rows
            await turn.pause()
        await turn.end_slice()
    return response


def _is_about_to_change(context: RequestContext, request: MetadataRequest) -> bool:
    """Return True if the response would name a controller or a leader that was lost just now."""
    current = context.broker.current
    contacts = current.contacts
    if not contacts.lost_at and not contacts.fetches_lost_at:
        return False
    time = context.broker.clock.monotonic() - _SUCCESSION_SECONDS
    lost_at = current.controller_lost_at
    if lost_at is not None and lost_at > time:
        return True
    lost = contacts.lost_after(time)
    return bool(lost) and any(
        partition.leader in lost
        for topic in _existing(context, request)
        for partition in topic.partitions
    )


def _existing(context: RequestContext, request: MetadataRequest) -> Iterable[TopicImage]:
    """Return the topics that the response contains."""
    image, requested = context.broker.image, request.topics or ()
    if _is_for_all(context, request):
        return image.topics.values()
    found = (
        image.topic_by_id(topic.topic_id) if topic.name is None else image.topic(topic.name)
        for topic in requested
    )
    return (topic for topic in found if topic is not None)


async def _answer_later(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    while _is_about_to_change(context, request):
        await context.broker.clock.sleep(_LOOK_SECONDS)
    if _is_vast(context, request):
        return await _answer_in_slices(context, request)
    return _answer(context, request, {})


def _has_names_only(requested: list[MetadataRequestTopic]) -> bool:
    return all(topic.name is not None and topic.topic_id == ZERO_UUID for topic in requested)


def _refusal(requested: list[MetadataRequestTopic]) -> MetadataResponse:
    """Refuse topic ids in versions 10 and 11: the requests have the field, but may not use it."""
    code = int(ErrorCode.INVALID_REQUEST)
    topics = [
        MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
        for topic in requested
    ]
    return MetadataResponse(topics=topics)


def _wanted(requested: list[MetadataRequestTopic]) -> list[MetadataRequestTopic]:
    """Return each topic once; if there are ids, names are ignored, as in Kafka."""
    if any(topic.topic_id != ZERO_UUID for topic in requested):
        ids = dict.fromkeys(topic.topic_id for topic in requested if topic.topic_id != ZERO_UUID)
        return [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids]
    return list({topic.name: topic for topic in requested}.values())


def _topics_to_create(context: RequestContext, request: MetadataRequest) -> list[str]:
    if not request.topics or not request.allow_auto_topic_creation:
        return []
    topics = context.broker.image.topics
    missing = [topic.name for topic in request.topics if topic.name and topic.name not in topics]
    if missing and context.broker.options.boolean("auto.create.topics.enable"):
        return missing
    return []


async def _create_and_answer(
    context: RequestContext, request: MetadataRequest, missing: list[str]
) -> MetadataResponse:
    errors: dict[str, ApiError] = {}
    try:
        async with asyncio.timeout(_CREATION_SECONDS):
            for name in dict.fromkeys(missing):
                errors |= await _create(context, name)
    except TimeoutError:
        late = ApiError(ErrorCode.LEADER_NOT_AVAILABLE)
        errors |= {name: late for name in missing if name not in context.broker.image.topics}
    return _answer(context, request, errors)


async def _create(context: RequestContext, name: str) -> dict[str, ApiError]:
    try:
        validate_topic_name(name)
        if await context.broker.controller.ensure_topic(name):
            context.broker.audit.topic_created(context, name)
        topic = context.broker.image.topic(name)
        if topic is not None:
            mutations.count(context, len(topic.partitions))
    except ApiError as error:
        # Another request has created the topic in the meantime.
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            return {name: error}
    return {}


def _answer(
    context: RequestContext, request: MetadataRequest, errors: dict[str, ApiError]
) -> MetadataResponse:
    response, reachable = _head(context, request)
    response.topics = _topics(context, request, errors, reachable)
    return response


def _head(context: RequestContext, request: MetadataRequest) -> tuple[MetadataResponse, set[int]]:
    """Return a response without topics, and the brokers that the client can reach."""
    image, departed = context.broker.image, context.broker.current.departed
    brokers = []
    listed = {**departed, **image.brokers} if departed else image.brokers
    for broker in listed.values():
        address = context.address_of(broker)
        if address is not None:
            brokers.append(
                MetadataResponseBroker(
                    node_id=broker.id, host=address[0], port=address[1], rack=broker.rack
                )
            )
    reachable = {broker.node_id for broker in brokers if broker.node_id in image.brokers}
    response = MetadataResponse(
        brokers=brokers,
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.current.controller_id,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = operations.on_cluster(context.access)
    return response, reachable


def _topics(
    context: RequestContext,
    request: MetadataRequest,
    errors: dict[str, ApiError],
    reachable: set[int],
) -> list[MetadataResponseTopic]:
    image = context.broker.image
    version = context.api_version
    if _is_for_all(context, request):
        described = [_topic(topic, image, reachable, version) for topic in image.topics.values()]
    else:
        described = [
            _asked_topic(topic, image, reachable, version, errors) for topic in request.topics or ()
        ]
    _add_operations(context, request, described)
    return described


def _add_operations(
    context: RequestContext, request: MetadataRequest, described: list[MetadataResponseTopic]
) -> None:
    if request.include_topic_authorized_operations:
        for topic in described:
            if topic.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
                topic.topic_authorized_operations = operations.on_topic(context.access, topic.name)


def _asked_topic(
    requested: MetadataRequestTopic,
    image: ClusterImage,
    reachable: set[int],
    version: int,
    errors: dict[str, ApiError],
) -> MetadataResponseTopic:
    if requested.name is None:
        topic = image.topic_by_id(requested.topic_id)
        if topic is not None:
            return _topic(topic, image, reachable, version)
        code = ErrorCode.UNKNOWN_TOPIC_ID
        return MetadataResponseTopic(error_code=int(code), name=None, topic_id=requested.topic_id)
    topic = image.topic(requested.name)
    if topic is not None:
        return _topic(topic, image, reachable, version)
    return MetadataResponseTopic(
        error_code=int(_code_of_missing(requested.name, errors)),
        name=requested.name,
        is_internal=is_internal(requested.name),
    )


def _code_of_missing(name: str, errors: dict[str, ApiError]) -> ErrorCode:
    if name in errors:
        return errors[name].code
    try:
        validate_topic_name(name)
    except ApiError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _topic(
    topic: TopicImage, image: ClusterImage, reachable: set[int], version: int
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[
            _partition(partition, image, reachable, version) for partition in topic.partitions
        ],
    )


def _partition(
    partition: PartitionImage, image: ClusterImage, reachable: set[int], version: int
) -> MetadataResponsePartition:
    code = ErrorCode.NONE
    leader = partition.leader
    if leader not in reachable:
        code = ErrorCode.LEADER_NOT_AVAILABLE
        if leader in image.brokers and version >= _FIRST_VERSION_WITH_LISTENER_NOT_FOUND:
            code = ErrorCode.LISTENER_NOT_FOUND
        leader = -1
    dead = [replica for replica in partition.replicas if replica not in image.brokers]
    return MetadataResponsePartition(
        error_code=int(code),
        partition_index=partition.partition,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=sorted({*dead, *partition.offline_replicas}),
    )
