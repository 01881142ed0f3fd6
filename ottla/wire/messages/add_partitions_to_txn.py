"""AddPartitionsToTxn (API key 24): make partitions part of a transaction, or ask whether they are.

Versions 0-5; what each one added:

    2     PRODUCER_FENCED may be returned
    3     flexible
    4     several transactions and verify_only, for brokers (KIP-890)
    5     TRANSACTION_ABORTABLE may be returned (KIP-890)
"""

from ottla.wire.schema import Message, Struct, array, boolean, int16, int32, int64, string


class AddPartitionsToTxnTopic(Struct):
    """An element of `topics`."""

    name: str = string()
    partitions: list[int] = array(int32)


class AddPartitionsToTxnTransaction(Struct):
    """An element of `transactions`."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    verify_only: bool = boolean()
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic)


class AddPartitionsToTxnRequest(Message, api_key=24, versions=(0, 5), flexible_since=3):
    """Request of AddPartitionsToTxn."""

    transactions: list[AddPartitionsToTxnTransaction] = array(
        AddPartitionsToTxnTransaction, since=4
    )
    v3_and_below_transactional_id: str = string(until=3)
    v3_and_below_producer_id: int = int64(until=3)
    v3_and_below_producer_epoch: int = int16(until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, until=3)


class AddPartitionsToTxnPartitionResult(Struct):
    """An element of `results_by_partition`."""

    partition_index: int = int32()
    partition_error_code: int = int16()


class AddPartitionsToTxnTopicResult(Struct):
    """An element of `topic_results`."""

    name: str = string()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(
        AddPartitionsToTxnPartitionResult
    )


class AddPartitionsToTxnResult(Struct):
    """An element of `results_by_transaction`."""

    transactional_id: str = string()
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult)


class AddPartitionsToTxnResponse(Message, api_key=24, versions=(0, 5), flexible_since=3):
    """Response of AddPartitionsToTxn."""

    throttle_time_ms: int = int32()
    error_code: int = int16(since=4, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(
        AddPartitionsToTxnResult, since=4
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, until=3
    )
