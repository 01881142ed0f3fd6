"""EndTxn (key 26), versions 0-5: commit or abort a transaction.

v2: PRODUCER_FENCED. v3: flexible. v4: TRANSACTION_ABORTABLE, which does not occur here. v5: the
epoch is incremented with every transaction and returned; if the epochs are exhausted, a new
producer id is returned with it (KIP-890, transaction.version 2). The response is sent when the
result is decided; the markers that make it visible are written afterwards.

Not done: nothing.
"""

from ottla.base.errors import ErrorCode
from ottla.coordinators.replies import Reply, shaped
from ottla.coordinators.txn.machine import ProducerIdAndEpoch, TransitionResult
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

API = ApiKey.END_TXN
MIN_VERSION = 0
MAX_VERSION = 5

_FENCED_VERSION = 2
_BUMPING_VERSION = 5


def handle(context: RequestContext, request: EndTxnRequest) -> Reply[EndTxnResponse]:
    """Commit or abort the transaction."""
    transactions = context.broker.transactions
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    name, is_commit = request.transactional_id, request.committed
    if context.api_version >= _BUMPING_VERSION:
        return shaped(transactions.end_with_bump(name, producer, is_commit=is_commit), _bumped)
    version = context.api_version

    def answer(code: ErrorCode) -> EndTxnResponse:
        is_old = version < _FENCED_VERSION and code is ErrorCode.PRODUCER_FENCED
        return EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH if is_old else code)

    return shaped(transactions.end(name, producer, is_commit=is_commit), answer)


def _bumped(result: TransitionResult) -> EndTxnResponse:
    producer = result.producer if result.code is ErrorCode.NONE else ProducerIdAndEpoch()
    return EndTxnResponse(
        error_code=result.code,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
    )
