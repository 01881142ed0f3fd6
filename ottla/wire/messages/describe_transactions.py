"""DescribeTransactions (API key 65): state and partitions of transactions (KIP-664).

Version 0, flexible.
"""

from ottla.wire.schema import Message, Struct, array, int16, int32, int64, string


class DescribeTransactionsRequest(Message, api_key=65, versions=(0, 0), flexible_since=0):
    """Request of DescribeTransactions."""

    transactional_ids: list[str] = array(string)


class TopicData(Struct):
    """An element of `topics`."""

    topic: str = string()
    partitions: list[int] = array(int32)


class TransactionState(Struct):
    """An element of `transaction_states`."""

    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[TopicData] = array(TopicData)


class DescribeTransactionsResponse(Message, api_key=65, versions=(0, 0), flexible_since=0):
    """Response of DescribeTransactions."""

    throttle_time_ms: int = int32()
    transaction_states: list[TransactionState] = array(TransactionState)
