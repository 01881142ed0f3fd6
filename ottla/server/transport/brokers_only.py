"""Requests that only brokers send: refused unless the sender has proven to be one."""

from collections.abc import Callable
from typing import Any

from ottla.base.errors import ApiError, ErrorCode
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext

Handle = Callable[[RequestContext, Any], Any]


def for_brokers_only(handle: Handle, refuse: Callable[[Any], Any] | None = None) -> Handle:
    """Return `handle` with the check; the dispatcher calls the result as it would call `handle`.

    `refuse` returns the response to a refused request if that has no error of its own.
    """

    def checked(context: RequestContext, request: Any) -> Any:
        if context.is_from_any_broker:
            return handle(context, request)
        if refuse is not None:
            return refuse(request)
        raise ApiError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            "Only a broker of this cluster may send this request.",
        )

    return checked


def is_for_brokers(row: ApiProperties, version: int, *, is_authorized: bool) -> bool:
    """Return True if clients must not send an API in a version.

    `is_authorized` is True if the broker has an authorizer.
    """
    if not row.needs_proof or version < row.proof_since:
        return False
    return not (row.is_for_administrators and is_authorized)
