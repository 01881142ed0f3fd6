"""The quota of controller mutations, as the handlers that change topics ask for it (KIP-599).

Partitions that are created or deleted count, those of refused topics do not. Versions that know
THROTTLING_QUOTA_EXCEEDED get it while the quota is exhausted; older ones are served, and wait.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.server.context import RequestContext

_NEVER = 2**15


def are_limited(context: RequestContext) -> bool:
    """Tell whether the client has such a quota at all."""
    return context.usage is not None and context.usage.limits_mutations


def refusal(context: RequestContext, partitions: int, *, strict_since: int) -> ApiError | None:
    """Count the partitions of one topic; return why they cannot be created or deleted now."""
    if context.usage is None:
        return None
    is_taken = context.usage.takes_mutations(
        partitions,
        context.broker.clock.monotonic(),
        is_strict=context.api_version >= strict_since,
    )
    return None if is_taken else ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)


def count(context: RequestContext, partitions: int) -> None:
    """Count partitions that have been created on the way; the client waits for what is too much."""
    refusal(context, partitions, strict_since=_NEVER)
