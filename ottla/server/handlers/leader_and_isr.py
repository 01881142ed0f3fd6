"""LeaderAndIsr (key 4), versions 5-7: the controller sets leader, ISR and replicas of partitions.

v6: leader recovery state. v7: is_kraft_controller. STALE_CONTROLLER_EPOCH and STALE_BROKER_EPOCH
reject the whole request; a partition whose leader epoch is older than the known one has
STALE_CONTROLLER_EPOCH, one on a failed disk KAFKA_STORAGE_ERROR.

Only a broker that has proven its identity is served: CLUSTER_AUTHORIZATION_FAILED.

Not done: versions 0-4, of brokers before Apache Kafka 2.8. A complete request (type 2) does not
stop replicas that it does not name; ZooKeeper controllers do not send it.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.controller.planning.notices import Fence
from ottla.server.api_properties import ApiProperties
from ottla.server.brokers import states
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)

API = ApiKey.LEADER_AND_ISR
MIN_VERSION = 5
MAX_VERSION = 7
PROPERTIES = ApiProperties(is_among_brokers=True, needs_proof=True)


async def handle(context: RequestContext, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    """Apply the states to this broker's replicas; the response names each partition."""
    if not context.speaks_for(request.controller_id):
        return LeaderAndIsrResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    fence = Fence(request.controller_id, request.controller_epoch, request.broker_epoch)
    try:
        partitions = states.partition_states(request.topic_states)
        async with context.broker.notice_order:
            codes = await context.broker.notices.apply_leader_and_isr(fence, partitions)
    except ApiError as error:
        return LeaderAndIsrResponse(error_code=int(error.code))
    return LeaderAndIsrResponse(
        topics=[
            LeaderAndIsrTopicError(
                topic_id=bytes(topic.topic_id),
                partition_errors=[
                    LeaderAndIsrPartitionError(
                        partition_index=state.partition_index,
                        error_code=int(
                            codes.get((topic.topic_name, state.partition_index), ErrorCode.NONE)
                        ),
                    )
                    for state in topic.partition_states
                ],
            )
            for topic in request.topic_states
        ]
    )
