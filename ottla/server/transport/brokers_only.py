"""Requests that only brokers send: refused unless the sender has proven to be one."""

from collections.abc import Callable
from typing import Any

from ottla.base.errors import ApiError, ErrorCode
from ottla.server.api_properties import ApiProperties
from ottla.server.context import RequestContext

Handle = Callable[[RequestContext, Any], Any]


def for_brokers_only(handle: Handle) -> Handle:
    """Return `handle` with the check; the dispatcher calls the result as it would call `handle`."""

    def checked(context: RequestContext, request: Any) -> Any:
        if not context.is_from_any_broker:
            raise ApiError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                "Only a broker of this cluster may send this request.",
            )
        return handle(context, request)

    return checked


def refused_in_parts(handle: Handle, refuse: Callable[[Any], Any]) -> Handle:
    """Return `handle` with `refuse` for the response to a sender that a check has refused."""

    def checked(context: RequestContext, request: Any) -> Any:
        try:
            return handle(context, request)
        except ApiError as error:
            if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise
            return refuse(request)

    return checked


def is_for_brokers(row: ApiProperties, version: int, *, is_authorized: bool) -> bool:
    """Return True if clients must not send an API in a version.

    `is_authorized` is True if the broker has an authorizer.
    """
    if not row.needs_proof or version < row.proof_since:
        return False
    return not (row.is_for_administrators and is_authorized)
