"""InitProducerId (API key 22): get a producer id; for transactions, fence older producers.

Versions 0-6; what each one added:

    2     flexible
    3     a producer names its id and epoch to have the epoch raised (KIP-360)
    4     PRODUCER_FENCED may be returned
    5     TRANSACTION_ABORTABLE may be returned (KIP-890)
    6     two-phase commit (KIP-939)
"""

from ottla.wire.schema import Message, boolean, int16, int32, int64, string


class InitProducerIdRequest(Message, api_key=22, versions=(0, 6), flexible_since=2):
    """Request of InitProducerId."""

    transactional_id: str | None = string(nullable_since=0)
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(since=3, default=-1)
    producer_epoch: int = int16(since=3, default=-1)
    enable2_pc: bool = boolean(since=6)
    keep_prepared_txn: bool = boolean(since=6)


class InitProducerIdResponse(Message, api_key=22, versions=(0, 6), flexible_since=2):
    """Response of InitProducerId."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64(since=6, default=-1)
    ongoing_txn_producer_epoch: int = int16(since=6, default=-1)
