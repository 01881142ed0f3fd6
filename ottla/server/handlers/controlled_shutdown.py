"""ControlledShutdown (key 7), versions 2-3: a broker that is about to stop gives up its leaders.

v3: flexible. The response is sent when the brokers know the new leaders; it lists the partitions
that the broker still leads, because no other replica is in sync. It may ask again.

Only a broker that has proven its identity is served: CLUSTER_AUTHORIZATION_FAILED.

Not done: versions 0-1, without a broker epoch, of brokers before Apache Kafka 2.2.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)

API = ApiKey.CONTROLLED_SHUTDOWN
MIN_VERSION = 2
MAX_VERSION = 3
PROPERTIES = ApiProperties(is_among_brokers=True, needs_proof=True)

# Of the notices to all brokers; the leaders have moved by then.
_TIMEOUT_MS = 10_000


async def handle(
    context: RequestContext, request: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    """Have the controller move the broker's leaders away."""
    if not context.speaks_for(request.broker_id):
        return ControlledShutdownResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    try:
        remaining = await context.broker.controller.shut_down(
            request.broker_id, request.broker_epoch, timeout_ms=_TIMEOUT_MS
        )
    except ApiError as error:
        return ControlledShutdownResponse(error_code=int(error.code))
    return ControlledShutdownResponse(
        remaining_partitions=[
            RemainingPartition(topic_name=name, partition_index=number)
            for name, number in remaining
        ]
    )
