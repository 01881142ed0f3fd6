"""The quota of controller mutations, as the handlers that change topics apply it (KIP-599).

Created and deleted partitions count; partitions of rejected topics do not. While the quota is
exhausted, versions that know THROTTLING_QUOTA_EXCEEDED get it; older versions are served and
throttled.
"""

from typing import Protocol

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.controller.planning.requests import Admit, admit_all
from ottla.server.quotas.clients import RequestUsage

_NEVER = 2**15


class _HasClock(Protocol):
    @property
    def clock(self) -> Clock: ...


class MutatingRequest(Protocol):
    """The parts of a request's context that its mutations are counted by."""

    @property
    def broker(self) -> _HasClock:
        """The broker that serves the request."""
        ...

    @property
    def api_version(self) -> int:
        """The version of the request."""
        ...

    @property
    def usage(self) -> RequestUsage | None:
        """The quotas of the client; None if the client has no quotas."""
        ...


def are_limited(context: MutatingRequest) -> bool:
    """Return True if the client has a quota of mutations."""
    return context.usage is not None and context.usage.limits_mutations


def refusal(context: MutatingRequest, partitions: int, *, strict_since: int) -> ApiError | None:
    """Count the partitions of one topic; return the error if they exceed the quota."""
    if context.usage is None:
        return None
    is_taken = context.usage.takes_mutations(
        partitions,
        context.broker.clock.monotonic(),
        is_strict=context.api_version >= strict_since,
    )
    return None if is_taken else ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)


def admission(context: MutatingRequest, *, strict_since: int) -> Admit:
    """Return how the controller counts the new partitions of each topic of a request, once."""
    if not are_limited(context):
        return admit_all
    decided: dict[str, ApiError | None] = {}

    def admit(topic: str, partitions: int) -> ApiError | None:
        if topic not in decided:
            decided[topic] = refusal(context, partitions, strict_since=strict_since)
        return decided[topic]

    return admit


def count(context: MutatingRequest, partitions: int) -> None:
    """Count partitions that were created automatically; the client is throttled for the excess."""
    refusal(context, partitions, strict_since=_NEVER)
