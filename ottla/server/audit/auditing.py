"""Handlers of administrative APIs with the audit log around them.

Requests of brokers are left out: the broker that a client has asked writes the record.
"""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, Protocol

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.slices import Slices
from ottla.security.acls import CLUSTER_NAME, ResourceType
from ottla.server.audit.changes import AuditedApi, AuditedChange, Exchange, failure
from ottla.server.audit.log import NO_AUTHORIZER, Requested, Subject, is_exempt, origin_of
from ottla.server.audit.record import SUCCESS
from ottla.server.authorization.trace import Trace
from ottla.wire.api_keys import ApiKey

Handle = Callable[[Any, Any], Any]

UNKNOWN = "unknown"
"""The result of a request that was interrupted."""

# Another broker makes the change, or this one does later: the client asks again.
_ELSEWHERE = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
)
# The authorizer has reported these as denials.
_DENIED = frozenset(code for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED"))


class AuditedRequest(Requested, Protocol):
    """The parts of a request's context that its audit needs."""

    @property
    def broker(self) -> Any:
        """The broker, with its audit log."""
        ...


class _Audit:
    """The audit of one request, from its arrival to its response."""

    def __init__(self, api: ApiKey, row: AuditedApi, context: AuditedRequest, request: Any) -> None:
        self._api = api.name
        self._row = row
        self._context = context
        self._request = request
        self._log = context.broker.audit
        # As long as the client has this identity.
        self._origin = origin_of(context.connection, context.client_id)
        self._subject = "" if row.subject is None else row.subject(context.broker, request)

    def answered(self, response: Any) -> None:
        """Write a record for each change of the response."""
        for change in self._row.changes(Exchange(self._request, response, self._subject)):
            self._write(change)

    async def answered_in_slices(self, response: Any) -> None:
        """Do the same, and let others run: a response may have thousands of changes."""
        slices = Slices(self._context.broker.clock)
        for change in self._row.changes(Exchange(self._request, response, self._subject)):
            self._write(change)
            await slices.pause()

    def failed(self, error: BaseException | None) -> None:
        """Write a record for the whole request."""
        if isinstance(error, ApiError):
            self._write(failure(int(error.code)))
        else:
            self._write(failure(0), UNKNOWN)

    def settled(self, future: "asyncio.Future[Any]") -> None:
        """Write the records of a response that has become available."""
        if future.cancelled():
            self.failed(None)
            return
        error = future.exception()
        response = None if error is not None else future.result()
        if error is not None or isinstance(response, ApiError):
            self.failed(error or response)
        else:
            self.answered(response)

    def _write(self, change: AuditedChange, result: str = "") -> None:
        code = ErrorCode(change.error_code)
        if code in _ELSEWHERE or code in _DENIED:
            return
        self._log.change(
            self._origin,
            Subject(self._api, self._row.operation.name, change.resource),
            rule=self._rule(change),
            result=result or (SUCCESS if code is ErrorCode.NONE else code.name),
            details=change.details,
        )

    def _rule(self, change: AuditedChange) -> str:
        access = self._context.access
        if access is None:
            return self._row.rule or NO_AUTHORIZER
        trace: Trace | None = access.trace
        if trace is None:
            return self._row.rule
        rights = [(ResourceType.CLUSTER, CLUSTER_NAME)]
        if change.right is not None:
            rights.append(change.right)
        return trace.rule_of(self._row.operation, rights) or self._row.rule


def audited(handle: Handle, api: ApiKey, row: AuditedApi) -> Handle:
    """Return `handle` with its audit; the dispatcher calls the result as it would call `handle`."""

    async def audited_later(context: AuditedRequest, request: Any) -> Any:
        if is_exempt(context.connection, api):
            return await handle(context, request)
        audit = _Audit(api, row, context, request)
        try:
            response = await handle(context, request)
        except (ApiError, asyncio.CancelledError) as error:
            audit.failed(error)
            raise
        await audit.answered_in_slices(response)
        return response

    def audited_now(context: AuditedRequest, request: Any) -> Any:
        if is_exempt(context.connection, api):
            return handle(context, request)
        audit = _Audit(api, row, context, request)
        try:
            reply = handle(context, request)
        except ApiError as error:
            audit.failed(error)
            raise
        if isinstance(reply, asyncio.Future):
            reply.add_done_callback(audit.settled)
        else:
            audit.answered(reply)
        return reply

    return audited_later if inspect.iscoroutinefunction(handle) else audited_now
