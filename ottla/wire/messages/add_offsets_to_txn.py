"""AddOffsetsToTxn (API key 25): make the offsets of a group part of a transaction.

Versions 0-4; what each one added:

    2     PRODUCER_FENCED may be returned
    3     flexible
    4     TRANSACTION_ABORTABLE may be returned (KIP-890)
"""

from ottla.wire.schema import Message, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message, api_key=25, versions=(0, 4), flexible_since=3):
    """Request of AddOffsetsToTxn."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(Message, api_key=25, versions=(0, 4), flexible_since=3):
    """Response of AddOffsetsToTxn."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
