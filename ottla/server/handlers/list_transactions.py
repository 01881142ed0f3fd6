"""ListTransactions (key 66), versions 0-2: the transactional ids that this broker coordinates
(KIP-664).

v0: filters by state and producer id. v1: filter by duration (KIP-994). v2: filter by a pattern of
the whole id, which is a regular expression (KIP-1152).

Not done: nothing.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.coordinators.txn.state import STATE_OF_NAME, TransactionMetadata
from ottla.server.context import RequestContext
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from ottla.coordinators.consumer.regex import patterns
else:
    # Few requests have a pattern.
    patterns = deferred_module("ottla.coordinators.consumer.regex.patterns")

API = ApiKey.LIST_TRANSACTIONS
MIN_VERSION = 0
MAX_VERSION = 2


def handle(context: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List the ids that match the filters."""
    transactions = context.broker.transactions
    if transactions.is_loading():
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    text = request.transactional_id_pattern
    try:
        pattern = patterns.SubscriptionPattern(text) if text else None
    except ApiError as error:
        return ListTransactionsResponse(error_code=error.code)
    states = {STATE_OF_NAME[name] for name in request.state_filters if name in STATE_OF_NAME}
    producer_ids = set(request.producer_id_filters)

    def is_wanted(transaction: TransactionMetadata) -> bool:
        if request.state_filters and transaction.state not in states:
            return False
        if producer_ids and transaction.producer_id not in producer_ids:
            return False
        if pattern is not None and not pattern.matches(transaction.transactional_id):
            return False
        shortest = request.duration_filter
        return shortest < 0 or transactions.is_long(transaction, shortest)

    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in STATE_OF_NAME],
        transaction_states=[
            TransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.display_name,
            )
            for transaction in transactions.transactions()
            if is_wanted(transaction)
        ],
    )
