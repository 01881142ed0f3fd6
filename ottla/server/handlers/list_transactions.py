"""ListTransactions (key 66), versions 0-1: the transactional ids that this broker coordinates (KIP-664).

v0: filters by state and producer id. v1: filter by duration (KIP-994).

Not done: version 2, the filter by pattern (KIP-1152): a pattern may take Python's matcher any time.
"""

from ottla.base.errors import ErrorCode
from ottla.coordinators.txn.state import STATE_OF_NAME, Transaction
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

API = ApiKey.LIST_TRANSACTIONS
MIN_VERSION = 0
MAX_VERSION = 1


def handle(context: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List the ids, through the filters."""
    transactions = context.broker.transactions
    if transactions.is_loading():
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states = {STATE_OF_NAME[name] for name in request.state_filters if name in STATE_OF_NAME}
    producer_ids = set(request.producer_id_filters)

    def is_wanted(transaction: Transaction) -> bool:
        if request.state_filters and transaction.state not in states:
            return False
        if producer_ids and transaction.producer_id not in producer_ids:
            return False
        shortest = request.duration_filter
        return shortest < 0 or transactions.is_long(transaction, shortest)

    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in STATE_OF_NAME],
        transaction_states=[
            TransactionState(
                transactional_id=item.transactional_id,
                producer_id=item.producer_id,
                transaction_state=item.state.shown,
            )
            for item in transactions.transactions()
            if is_wanted(item)
        ],
    )
