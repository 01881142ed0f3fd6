"""Whether a batch of a transaction may be written: its partition must be part of an open one.

A producer that was fenced, or whose transaction has ended behind its back, would else leave records
that no marker ever ends, and read-committed consumers would wait at them for ever (KIP-890). Follows
AddPartitionsToTxnManager and ReplicaManager.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.txn.machine import Producer
from ottla.replication.partition import Partition
from ottla.server.context import Broker

# Clients before KIP-890 try again on this one without asking for metadata first.
_LATER = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def admit(
    broker: Broker,
    partition: Partition,
    transactional_id: str,
    producer: Producer,
    *,
    knows_abortable: bool,
) -> None:
    """Raise ApiError unless the producer has the partition in an open transaction.

    `knows_abortable`: the request's version has TRANSACTION_ABORTABLE; others get INVALID_TXN_STATE.
    """
    if partition.log.producers.has_open_transaction(*producer):
        return
    if not broker.options.boolean("transaction.partition.verification.enable"):
        return
    place = (partition.topic, partition.partition)
    code = broker.transactions.verify(transactional_id, producer, place)
    if code is ErrorCode.NONE:
        return
    if code in _LATER:
        reason = f"The transaction cannot be verified now: {code.name}."
        raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, reason)
    if code is ErrorCode.PRODUCER_FENCED:
        raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)
    if code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        code = ErrorCode.INVALID_TXN_STATE
    if code in (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE):
        raise ApiError(code, "The partition is not part of an open transaction of the producer.")
    raise ApiError(code)
