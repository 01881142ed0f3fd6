"""UpdateMetadata (key 6), versions 7-8: the controller informs this broker about the cluster.

v8: is_kraft_controller, type. The leader -2 of a partition means that its topic is being deleted; a
request of type 2 has every topic, so this broker forgets all others. Requests of type 64 are parts
of an update that takes effect with its last request; one of type 65 only names the brokers, before
a first LeaderAndIsr.

Only a broker that has proven its identity is served: CLUSTER_AUTHORIZATION_FAILED.

Not done: versions 0-6, of brokers before Apache Kafka 2.8.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.slices import Slices
from ottla.controller.planning.notices import Fence
from ottla.server.api_properties import ApiProperties
from ottla.server.brokers import states
from ottla.server.context import Broker, RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

API = ApiKey.UPDATE_METADATA
MIN_VERSION = 7
MAX_VERSION = 8
PROPERTIES = ApiProperties(is_among_brokers=True, needs_proof=True)


async def handle(context: RequestContext, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
    """Apply the update to this broker's image."""
    if not context.speaks_for(request.controller_id):
        return UpdateMetadataResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    broker = context.broker
    fence = Fence(request.controller_id, request.controller_epoch, request.broker_epoch)
    if request.type == states.PART:
        broker.metadata_parts.add(fence, request.topic_states)
        return UpdateMetadataResponse()
    try:
        async with broker.notice_order:
            await _apply(broker, fence, request)
    except ApiError as error:
        return UpdateMetadataResponse(error_code=int(error.code))
    return UpdateMetadataResponse()


async def _apply(broker: Broker, fence: Fence, request: UpdateMetadataRequest) -> None:
    # No other request changes the topics of the image in the meantime.
    received, slices = states.ReceivedUpdate(broker.image), Slices(broker.clock)
    for topic in broker.metadata_parts.take(fence, request.topic_states):
        received.add(topic)
        await slices.pause()
    update = received.complete(request.live_brokers, is_complete=request.type == states.FULL)
    if request.type == states.INTRODUCTION:
        await broker.notices.introduce(fence, update.brokers or broker.image.brokers)
    else:
        await broker.notices.update_metadata(fence, update)
