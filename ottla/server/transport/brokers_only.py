"""Requests that only brokers send: refused unless the sender has proven to be one."""

from collections.abc import Callable
from typing import Any

from ottla.base.errors import ApiError, ErrorCode
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
