"""InitProducerId (key 22), versions 0-5: a producer id and epoch, which fence older producers.

v2: flexible. v3: id and epoch of a producer that continues (KIP-360); a producer without a
transactional id does not need them, because it gets a new id. v4: PRODUCER_FENCED. v5:
TRANSACTION_ABORTABLE, which does not occur here. An ongoing transaction of the id is aborted first:
CONCURRENT_TRANSACTIONS until that is complete.

Not done: version 6, two-phase commit (KIP-939), which Kafka 4.3 marks as unstable.
"""

import asyncio

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.txn.machine import ProducerIdAndEpoch
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

API = ApiKey.INIT_PRODUCER_ID
MIN_VERSION = 0
MAX_VERSION = 5

_FENCED_VERSION = 4


async def handle(context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Return a producer id that was never used, or the next epoch of a transactional id."""
    expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    # An id without an epoch, or an epoch without an id, is invalid.
    is_whole = (expected.producer_id == -1) == (expected.producer_epoch == -1)
    if request.transactional_id == "" or not is_whole:
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return await _idempotent(context)
    result = await context.broker.transactions.init_producer_id(
        request.transactional_id, request.transaction_timeout_ms, expected
    )
    code = result.code
    if code is ErrorCode.PRODUCER_FENCED and context.api_version < _FENCED_VERSION:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    if code is not ErrorCode.NONE or result.next is None:
        return _refused(code)
    return InitProducerIdResponse(
        producer_id=result.next.producer_id, producer_epoch=result.next.producer_epoch
    )


async def _idempotent(context: RequestContext) -> InitProducerIdResponse:
    reply = context.broker.producer_ids.next_id()
    try:
        producer_id = await reply if isinstance(reply, asyncio.Future) else reply
    except ApiError as error:
        return _refused(error.code)
    return InitProducerIdResponse(producer_id=producer_id)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)
