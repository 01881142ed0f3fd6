"""DescribeTransactions (key 65), version 0: state and partitions of transactions (KIP-664).

Not done: nothing.
"""

from ottla.base.errors import ErrorCode
from ottla.coordinators.txn.records import by_topic
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)

API = ApiKey.DESCRIBE_TRANSACTIONS
MIN_VERSION = 0
MAX_VERSION = 0


def handle(
    context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Describe each id that this broker coordinates."""
    return DescribeTransactionsResponse(
        transaction_states=[_describe(context, item) for item in request.transactional_ids]
    )


def _describe(context: RequestContext, transactional_id: str) -> TransactionState:
    if not transactional_id:
        return TransactionState(error_code=ErrorCode.INVALID_REQUEST)
    found = context.broker.transactions.find(transactional_id)
    if found is None:
        found = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    if isinstance(found, ErrorCode):
        return TransactionState(transactional_id=transactional_id, error_code=found)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.shown,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[
            TopicData(topic=name, partitions=numbers)
            for name, numbers in by_topic(found.partitions).items()
        ],
    )
