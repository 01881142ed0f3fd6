"""The transactional batches of a produce request: to which transaction the broker admits them.

A request is one write of one producer. `Admission` decides about the write (KIP-890); the decision
is applied to each batch before it is appended.
"""

import contextlib

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.txn.machine import Producer
from ottla.replication.partition import Partition
from ottla.server.produce.admission import (
    Refusals,
    TransactionalWrite,
    TransactionSupport,
    error_for,
)
from ottla.server.produce.request import ProduceContext, bytes_of, target_of
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest
from ottla.wire.records.batch import is_transactional, parse_header

_FIRST_VERSION_WITH_ABORTABLE = 11
_FIRST_VERSION_THAT_ADDS = 12


def write_of(context: ProduceContext, request: ProduceRequest) -> TransactionalWrite | None:
    """Return the write to be admitted; None if no batch of the request belongs to a transaction.

    Raises ApiError if the whole request is refused.
    """
    if request.transactional_id is not None:
        return _write_of(context, request, request.transactional_id)
    for topic in request.topic_data:
        for item in topic.partition_data:
            if is_transactional(item.records):
                raise ApiError(
                    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                    "A transactional batch needs a transactional id in the request.",
                )
    return None


def _write_of(
    context: ProduceContext, request: ProduceRequest, transactional_id: str
) -> TransactionalWrite | None:
    producers: set[Producer] = set()
    partitions: list[Partition] = []
    for topic in request.topic_data:
        for item in topic.partition_data:
            if not is_transactional(item.records):
                continue
            header = parse_header(bytes_of(item))
            if header.producer_id < 0:
                continue
            producers.add(Producer(header.producer_id, header.producer_epoch))
            # Partitions with an error join no transaction; appending reports the error.
            with contextlib.suppress(ApiError):
                partition = target_of(context, topic, item)
                partition.check_leader()
                partitions.append(partition)
    if len(producers) > 1:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "The batches of a transaction have more than one producer id or epoch.",
        )
    if not partitions:
        return None
    return TransactionalWrite(
        transactional_id, producers.pop(), partitions, _support(context.api_version)
    )


def check_admitted(
    context: ProduceContext, target: Partition, item: PartitionProduceData, refusals: Refusals
) -> None:
    """Raise ApiError if the batch may not be written because of the state of its transaction."""
    code = refusals.get((target.topic, target.partition))
    if code is not None:
        reason = f"The partition is not known to be part of the transaction: {code.name}."
        raise ApiError(error_for(code, _support(context.api_version)), reason)
    if context.api_version < _FIRST_VERSION_THAT_ADDS or not is_transactional(item.records):
        return
    header = parse_header(bytes_of(item))
    is_unknown = header.producer_id not in target.log.producers.producers
    if is_unknown and header.base_sequence > 0:
        # Each transaction begins at sequence 0, so earlier batches have been lost.
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"The first batch of producer {header.producer_id} has sequence number {header.base_sequence} instead of 0.",
        )


async def check_still_admitted(
    context: ProduceContext,
    target: Partition,
    item: PartitionProduceData,
    transactional_id: str | None,
) -> None:
    """Raise ApiError if the transaction of a batch has ended while the batch was validated."""
    records = bytes_of(item)
    if transactional_id is None or not is_transactional(records):
        return
    header = parse_header(records)
    producer = Producer(header.producer_id, header.producer_epoch)
    support = _support(context.api_version)
    write = TransactionalWrite(transactional_id, producer, [target], support)
    check_admitted(context, target, item, await context.broker.admission.confirm(write))


def _support(version: int) -> TransactionSupport:
    if version >= _FIRST_VERSION_THAT_ADDS:
        return TransactionSupport.ADDING
    is_aware = version >= _FIRST_VERSION_WITH_ABORTABLE
    return TransactionSupport.ABORTABLE if is_aware else TransactionSupport.OLD
