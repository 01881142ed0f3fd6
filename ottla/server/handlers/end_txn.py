"""EndTxn (key 26), versions 0-4: commit or abort a transaction.

v2: PRODUCER_FENCED. v3: flexible. v4: TRANSACTION_ABORTABLE, which does not happen here. Answered when
the outcome is decided; the markers that make it visible follow.

Not done: version 5, which raises the epoch with every transaction (KIP-890, transaction.version 2).
"""

from ottla.base.errors import ErrorCode
from ottla.coordinators.replies import Reply, shaped
from ottla.coordinators.txn.machine import Producer
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

API = ApiKey.END_TXN
MIN_VERSION = 0
MAX_VERSION = 4

_FENCED_VERSION = 2


def handle(context: RequestContext, request: EndTxnRequest) -> Reply[EndTxnResponse]:
    """Decide the outcome."""
    version = context.api_version

    def answer(code: ErrorCode) -> EndTxnResponse:
        is_old = version < _FENCED_VERSION and code is ErrorCode.PRODUCER_FENCED
        return EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH if is_old else code)

    producer = Producer(request.producer_id, request.producer_epoch)
    reply = context.broker.transactions.end(
        request.transactional_id, producer, is_commit=request.committed
    )
    return shaped(reply, answer)
