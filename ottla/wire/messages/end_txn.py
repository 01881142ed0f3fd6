"""EndTxn (API key 26): commit or abort a transaction.

Versions 0-5; what each one added:

    2     PRODUCER_FENCED may be returned
    3     flexible
    4     TRANSACTION_ABORTABLE may be returned (KIP-890)
    5     the epoch is raised with every transaction and returned (KIP-890)
"""

from ottla.wire.schema import Message, boolean, int16, int32, int64, string


class EndTxnRequest(Message, api_key=26, versions=(0, 5), flexible_since=3):
    """Request of EndTxn."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


class EndTxnResponse(Message, api_key=26, versions=(0, 5), flexible_since=3):
    """Response of EndTxn."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(since=5, default=-1, ignorable=True)
    producer_epoch: int = int16(since=5, default=-1, ignorable=True)
