"""AllocateProducerIds (key 67), version 0: the controller gives a broker a block of producer ids.

Ottla's own brokers take their blocks from the tree themselves; the brokers of Apache Kafka 3 ask
the controller (KIP-730).

Only a broker that has proven its identity is served: CLUSTER_AUTHORIZATION_FAILED.

Not done: nothing.
"""

from ottla.base.errors import ErrorCode
from ottla.cluster.zk.port import CoordinationError
from ottla.coordinators import producer_ids
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

API = ApiKey.ALLOCATE_PRODUCER_IDS
MIN_VERSION = 0
MAX_VERSION = 0
PROPERTIES = ApiProperties(is_among_brokers=True, needs_proof=True)


async def handle(
    context: RequestContext, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    """Allocate the next block of ids for a registered broker."""
    if not context.speaks_for(request.broker_id):
        return AllocateProducerIdsResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    controller = context.broker.controller
    if not controller.is_active:
        return AllocateProducerIdsResponse(error_code=int(ErrorCode.NOT_CONTROLLER))
    if not controller.registered(request.broker_id, request.broker_epoch):
        return AllocateProducerIdsResponse(error_code=int(ErrorCode.STALE_BROKER_EPOCH))
    try:
        block = await producer_ids.claim_block(lambda: controller.session, request.broker_id)
    except CoordinationError:
        return AllocateProducerIdsResponse(error_code=int(ErrorCode.UNKNOWN_SERVER_ERROR))
    return AllocateProducerIdsResponse(
        producer_id_start=block.first, producer_id_len=block.last - block.first + 1
    )
