"""StopReplica (key 5), versions 3-4: the controller has this broker stop replicas or delete them.

v4: is_kraft_controller. A replica that this broker does not have is no error. FENCED_LEADER_EPOCH
if the partition has a later leader epoch than the request (KIP-570); the epoch -2 is always
accepted.

Only a broker that has proven its identity is served: CLUSTER_AUTHORIZATION_FAILED.

Not done: versions 0-2, of brokers before Apache Kafka 2.6.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.controller.planning.notices import Fence
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)

API = ApiKey.STOP_REPLICA
MIN_VERSION = 3
MAX_VERSION = 4
PROPERTIES = ApiProperties(is_among_brokers=True, needs_proof=True)


async def handle(context: RequestContext, request: StopReplicaRequest) -> StopReplicaResponse:
    """Stop the replicas; the response names each partition."""
    if not context.speaks_for(request.controller_id):
        return StopReplicaResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    fence = Fence(request.controller_id, request.controller_epoch, request.broker_epoch)
    codes: dict[tuple[str, int], ErrorCode] = {}
    stopped: dict[bool, list[tuple[str, int]]] = {False: [], True: []}
    for topic in request.topic_states:
        for state in topic.partition_states:
            key = (topic.topic_name, state.partition_index)
            if _is_fenced(context, key, state.leader_epoch):
                codes[key] = ErrorCode.FENCED_LEADER_EPOCH
            else:
                stopped[state.delete_partition].append(key)
    try:
        for delete, keys in stopped.items():
            if keys or not delete:
                async with context.broker.notice_order:
                    codes |= await context.broker.notices.stop_replicas(fence, keys, delete=delete)
    except ApiError as error:
        return StopReplicaResponse(error_code=int(error.code))
    return StopReplicaResponse(
        partition_errors=[
            StopReplicaPartitionError(topic_name=name, partition_index=number, error_code=int(code))
            for (name, number), code in codes.items()
        ]
    )


def _is_fenced(context: RequestContext, key: tuple[str, int], leader_epoch: int) -> bool:
    if leader_epoch < 0:
        return False
    try:
        replica = context.broker.replicas.get(*key)
    except ApiError:
        return False
    return leader_epoch < replica.leader_epoch
