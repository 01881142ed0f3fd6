"""InitProducerId (key 22), versions 0-6: a producer id for an idempotent producer.

v2: flexible. v3: id and epoch of a producer that goes on (KIP-360), which a producer without a
transactional id does not need: it gets a new id. v6: two-phase commit (KIP-939).

Not done: transactional ids are refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, the error that
ends every client's attempts: there are no transactions yet.
"""

from ottla.base.errors import ErrorCode
from ottla.coordinators.replies import Reply, shaped
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

API = ApiKey.INIT_PRODUCER_ID
MIN_VERSION = 0
# Kafka 4.3 marks version 6 as unstable and does not tell clients of it.
MAX_VERSION = 5


def handle(
    context: RequestContext, request: InitProducerIdRequest
) -> Reply[InitProducerIdResponse]:
    """Return an id that no producer has had."""
    if request.transactional_id is not None:
        is_empty = request.transactional_id == ""
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        code = ErrorCode.INVALID_REQUEST if is_empty else refused
        return InitProducerIdResponse(error_code=code, producer_epoch=-1)
    return shaped(
        context.broker.producer_ids.next_id(),
        lambda producer_id: InitProducerIdResponse(producer_id=producer_id),
    )
