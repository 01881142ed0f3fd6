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
    """Describe each id that this broker coordinates, once; as in Kafka, an id that is named twice
    has two rows.
    """
    described = {name: _describe(context, name) for name in set(request.transactional_ids)}
    return DescribeTransactionsResponse(
        transaction_states=[described[name] for name in request.transactional_ids]
    )


def _describe(context: RequestContext, transactional_id: str) -> TransactionState:
    if not transactional_id:
        return TransactionState(error_code=ErrorCode.INVALID_REQUEST)
    transaction = context.broker.transactions.find(transactional_id)
    if transaction is None:
        transaction = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    if isinstance(transaction, ErrorCode):
        return TransactionState(transactional_id=transactional_id, error_code=transaction)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.display_name,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            TopicData(topic=name, partitions=numbers)
            for name, numbers in by_topic(transaction.partitions).items()
        ],
    )
