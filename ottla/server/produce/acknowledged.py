"""The answer for a batch whose replicas were awaited."""

from ottla.base.errors import ErrorCode
from ottla.wire.messages.produce import PartitionProduceResponse


def settle(answer: PartitionProduceResponse, code: ErrorCode) -> None:
    """Put the result of waiting for the acknowledgement into the answer of a written batch."""
    if code:
        answer.error_code = int(code)
        answer.error_message = code.message
        answer.base_offset = -1
