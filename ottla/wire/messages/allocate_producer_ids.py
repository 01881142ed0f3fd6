"""AllocateProducerIds (API key 67): a broker gets a block of producer ids from the controller
(KIP-730).

Version 0, flexible.
"""

from ottla.wire.schema import Message, int16, int32, int64


class AllocateProducerIdsRequest(Message, api_key=67, versions=(0, 0), flexible_since=0):
    """Request of AllocateProducerIds."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class AllocateProducerIdsResponse(Message, api_key=67, versions=(0, 0), flexible_since=0):
    """Response of AllocateProducerIds."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()
