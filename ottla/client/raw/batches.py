"""Writes record batches with requests of our own, for records that librdkafka would change.

librdkafka takes a timestamp of 0 or less for the current time.
"""

from collections.abc import Sequence

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.brokers import Brokers
from ottla.client.transaction import Transaction
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.records import Record, encode_batch

# Later versions name topics by id; newer transactions begin with their first write.
_VERSION_MAX = 11
_ALL_IN_SYNC = -1
_TIMEOUT_MS = 30_000


def append_batch(
    brokers: Brokers,
    topic: str,
    partition: int,
    records: Sequence[Record],
    *,
    codec: int = 0,
    transaction: Transaction | None = None,
) -> int:
    """Write one batch, acknowledged by all in-sync replicas; return the offset of its first record.

    A batch outside of a transaction is written at least once: it may be written twice if a
    connection breaks. A transaction may write one batch to each of its partitions.
    """
    if transaction is None:
        data = encode_batch(records, compression=codec)
    else:
        data = encode_batch(
            records,
            compression=codec,
            producer_id=transaction.producer.producer_id,
            producer_epoch=transaction.producer.epoch,
            base_sequence=0,
            transactional=True,
        )
    part = PartitionProduceData(index=partition, records=bytes(data))
    request = ProduceRequest(
        transactional_id=None if transaction is None else transaction.transactional_id,
        acks=_ALL_IN_SYNC,
        timeout_ms=_TIMEOUT_MS,
        topic_data=[TopicProduceData(name=topic, partition_data=[part])],
    )

    def attempt() -> int:
        node = brokers.leaders([(topic, partition)])[topic, partition]
        response = brokers.ask_node(node, request, ProduceResponse, max_version=_VERSION_MAX)
        result = response.responses[0].partition_responses[0]
        if result.error_code:
            reason = result.error_message or "the batch is refused"
            raise ApiError(ErrorCode(result.error_code), f"{topic}-{partition}: {reason}")
        return result.base_offset

    return brokers.retry(attempt)
