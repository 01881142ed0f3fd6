"""AddOffsetsToTxn (key 25), versions 0-4: make the offsets of a group part of a transaction.

v2: PRODUCER_FENCED. v3: flexible. v4: TRANSACTION_ABORTABLE, which does not occur here.

Not done: nothing.
"""

from ottla.base.errors import ErrorCode
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.coordinators.replies import Reply, shaped
from ottla.coordinators.txn.machine import ProducerIdAndEpoch
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

API = ApiKey.ADD_OFFSETS_TO_TXN
MIN_VERSION = 0
MAX_VERSION = 4

_FENCED_VERSION = 2


def handle(
    context: RequestContext, request: AddOffsetsToTxnRequest
) -> Reply[AddOffsetsToTxnResponse]:
    """Add the partition of __consumer_offsets that contains the group."""
    version = context.api_version

    def answer(code: ErrorCode) -> AddOffsetsToTxnResponse:
        is_old = version < _FENCED_VERSION and code is ErrorCode.PRODUCER_FENCED
        return AddOffsetsToTxnResponse(
            error_code=ErrorCode.INVALID_PRODUCER_EPOCH if is_old else code
        )

    broker = context.broker
    partition = (GROUP_OFFSETS_TOPIC, broker.groups.partition_for(request.group_id))
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    reply = broker.transactions.add_partitions(request.transactional_id, producer, (partition,))
    return shaped(reply, answer)
