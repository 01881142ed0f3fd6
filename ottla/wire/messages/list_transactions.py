"""ListTransactions (API key 66): transactions that a broker coordinates (KIP-664).

Versions 0-2, flexible; what each one added:

    1     filter by duration (KIP-994)
    2     filter by pattern of the transactional id (KIP-1152)
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, int64, string


class ListTransactionsRequest(Message, api_key=66, versions=(0, 2), flexible_since=0):
    """Request of ListTransactions."""

    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64(since=1, default=-1)
    transactional_id_pattern: str | None = string(since=2, nullable_since=0, default=None)


class TransactionState(Struct):
    """An element of `transaction_states`."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


class ListTransactionsResponse(Message, api_key=66, versions=(0, 2), flexible_since=0):
    """Response of ListTransactions."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[TransactionState] = array(TransactionState)
