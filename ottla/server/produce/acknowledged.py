"""The response for a batch after its replicas were awaited."""

from ottla.base.errors import ErrorCode
from ottla.wire.messages.produce import PartitionProduceResponse


def settle(partition_response: PartitionProduceResponse, code: ErrorCode) -> None:
    """Put the result of waiting for the acknowledgement into the response for a written batch."""
    if code:
        partition_response.error_code = int(code)
        partition_response.error_message = code.message
        partition_response.base_offset = -1
