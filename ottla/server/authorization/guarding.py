"""The check of an API around its handler.

A check looks at a request before the handler. It raises the ApiError of the whole response, returns
a response in place of the handler's, removes the refused parts from the request and returns the
function that adds them to the response, or returns None.
"""

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from ottla.coordinators.replies import shaped
from ottla.net.connection import Connection
from ottla.security.acls import AclOperation
from ottla.server.authorization.access import Access, sender_of
from ottla.server.authorization.authorizer import Authorizer
from ottla.server.authorization.trace import Trace
from ottla.server.current import Current

Complete = Callable[[Any], Any]
# A response, the function that completes one, or None.
Verdict = Any
Check = Callable[[Access, Any], Verdict]
_ANY_VERSION = -1


class Checked(Protocol):
    """The parts of a request's context that a check needs."""

    # Read by handlers that check parts of a request themselves.
    access: Access | None

    @property
    def connection(self) -> Connection:
        """The connection of the sender."""
        ...

    @property
    def api_key(self) -> int:
        """The key of the API."""
        ...

    @property
    def api_version(self) -> int:
        """The version of the request."""
        ...

    @property
    def client_id(self) -> str | None:
        """The client id in the header of the request."""
        ...


Handle = Callable[[Any, Any], Any]


def allow_everyone(_access: Access, _request: Any) -> Verdict:
    """Check nothing: everyone may use the API, or its handler asks for the sender's rights."""
    return None


def topic_right(
    operation: AclOperation, authorizer: Authorizer, current: Current
) -> Callable[[Connection, str], bool]:
    """Return the function that returns True if a sender may do the operation to a topic."""
    number = int(operation)

    def may(connection: Connection, topic: str) -> bool:
        sender, generation = sender_of(connection), authorizer.generation
        if sender.is_allowed(generation, number, topic):
            return True
        access = Access(authorizer, connection, _ANY_VERSION, current)
        if not access.may_topic(operation, topic):
            return False
        sender.remember(generation, number, topic)
        return True

    return may


def identity_key(connection: Connection) -> tuple[Any, ...]:
    """Return a key: responses to connections with the same key show the same topics."""
    sender = sender_of(connection)
    return sender.requester, sender.is_broker


def guarded(
    handle: Handle,
    check: Check,
    authorizer: Authorizer,
    current: Current,
    *,
    is_traced: bool = False,
) -> Handle:
    """Return `handle` with the check; the dispatcher calls the result as it would call `handle`.

    If `is_traced`, the access has the decisions about each request, for the audit log.
    """

    def judge(context: Checked, request: Any) -> Verdict:
        access = context.access = Access(
            authorizer,
            context.connection,
            context.api_version,
            current,
            context.api_key,
            context.client_id,
        )
        if is_traced:
            access.trace = Trace()
        return check(access, request)

    async def checked_later(context: Checked, request: Any) -> Any:
        verdict = judge(context, request)
        if verdict is not None and not callable(verdict):
            return verdict
        response = await handle(context, request)
        return response if verdict is None else verdict(response)

    def checked(context: Checked, request: Any) -> Any:
        verdict = judge(context, request)
        if verdict is not None and not callable(verdict):
            return verdict
        reply = handle(context, request)
        return reply if verdict is None else shaped(reply, verdict)

    return checked_later if inspect.iscoroutinefunction(handle) else checked
