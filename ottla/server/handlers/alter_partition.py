"""AlterPartition (key 56), versions 2-3: a leader proposes the ISR of its partitions (KIP-497).

v3: broker epochs of the members (KIP-903). Only the controller decides; other brokers return
NOT_CONTROLLER. A repeated proposal gets the same response as the first one.

Only a broker that has proven its identity is served: CLUSTER_AUTHORIZATION_FAILED.

Not done: versions 0-1, which name topics instead of ids, of brokers before Apache Kafka 3.3.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.controller.planning.isr_changes import IsrRequest, IsrResult
from ottla.server.api_properties import ApiProperties
from ottla.server.brokers import states
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
    PartitionData,
)

API = ApiKey.ALTER_PARTITION
MIN_VERSION = 2
MAX_VERSION = 3
PROPERTIES = ApiProperties(is_among_brokers=True, needs_proof=True)

_UNKNOWN_EPOCH = -1


async def handle(context: RequestContext, request: AlterPartitionRequest) -> AlterPartitionResponse:
    """Have the controller decide about each partition."""
    if not context.speaks_for(request.broker_id):
        return AlterPartitionResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    try:
        proposals = [
            _proposal(bytes(topic.topic_id), partition)
            for topic in request.topics
            for partition in topic.partitions
        ]
        results = await context.broker.controller.alter_partitions(
            request.broker_id, request.broker_epoch, proposals
        )
    except ApiError as error:
        return AlterPartitionResponse(error_code=int(error.code))
    by_topic: dict[bytes, AlterPartitionResponseTopicData] = {}
    for result in results:
        topic = by_topic.setdefault(
            result.topic_id, AlterPartitionResponseTopicData(topic_id=result.topic_id)
        )
        topic.partitions.append(_answer(result))
    return AlterPartitionResponse(topics=list(by_topic.values()))


def _proposal(topic_id: bytes, partition: PartitionData) -> IsrRequest:
    epochs = [(member.broker_id, member.broker_epoch) for member in partition.new_isr_with_epochs]
    return IsrRequest(
        topic_id=topic_id,
        partition=partition.partition_index,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        isr=tuple(epochs or [(broker_id, _UNKNOWN_EPOCH) for broker_id in partition.new_isr]),
        is_recovering=states.is_recovering(partition.leader_recovery_state),
    )


def _answer(result: IsrResult) -> AlterPartitionResponsePartitionData:
    now = result.partition
    if now is None:
        return AlterPartitionResponsePartitionData(
            partition_index=result.number, error_code=int(result.error)
        )
    return AlterPartitionResponsePartitionData(
        partition_index=result.number,
        leader_id=now.leader,
        leader_epoch=now.leader_epoch,
        isr=list(now.isr),
        leader_recovery_state=int(now.is_recovering),
        partition_epoch=now.partition_epoch,
    )
