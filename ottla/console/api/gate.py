"""The caller of a request and its rights: credentials or session, role, read-only mode, audit log.

Scripts send HTTP Basic credentials of a console user. Pages send their session cookie; anything but
GET then needs the header `x-csrf-token`. A request from another site is refused in both cases.
"""

import base64
import binascii
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from dataclasses import fields as dataclass_fields
from typing import Any

from ottla.base.errors import OttlaError
from ottla.console.accounts.audit import Actor
from ottla.console.accounts.reading import Reader, reader_of
from ottla.console.accounts.roles import Role
from ottla.console.accounts.users import User
from ottla.console.api.errors import UNAUTHENTICATED, Denied
from ottla.console.api.operations import Operation, change_of
from ottla.console.state import Console
from ottla.console.web.requests import Request
from ottla.console.web.respond import find_session
from ottla.operations.survey.connections import ClusterConnection

_CSRF_HEADER = "x-csrf-token"
# The arguments of operations, and the fields of their objects, that name topics.
_TOPIC_NAMES, _TOPIC_LISTS = frozenset({"topic", "target"}), frozenset({"topics"})


@dataclass(frozen=True, slots=True)
class Caller:
    """A user and their rights to read records."""

    actor: Actor
    reader: Reader

    @property
    def role(self) -> Role:
        """The role of the user, the highest one of a user with rights in some clusters only."""
        reader = self.reader
        if reader.role is Role.ADMIN or not reader.rights:
            return reader.role
        return max(right.role for right in reader.rights)


def identify(console: Console, request: Request) -> Caller:
    """Return the caller of a request; Denied if there are no valid credentials."""
    if not request.is_same_origin:
        raise Denied(
            403,
            "CROSS_SITE",
            "Another site sent this request.",
            "Call the API from a script or from a page of the console.",
        )
    user, session = _user(console, request)
    if user.must_change:
        raise Denied(
            403,
            "PASSWORD_EXPIRED",
            f"The password of {user.name!r} must be changed first.",
            "Log in to the console with a browser and choose a new password.",
        )
    reader = reader_of(user, session, console.masking, console.rights)
    return Caller(Actor(user.name, request.client), reader)


def authorize(console: Console, caller: Caller, operation: Operation, cluster: str) -> None:
    """Raise Denied unless the caller may run the operation; UnknownCluster for an unknown one."""
    if caller.role < operation.role:
        raise Denied(
            403,
            "FORBIDDEN",
            f"{operation.name} needs the role {operation.role.label}; you are {caller.role.label}.",
            "Ask an admin of the console for the role.",
        )
    if not operation.is_change:
        return
    if not operation.has_cluster:
        return
    is_read_only = console.settings.is_read_only
    if is_read_only or console.clusters.get(cluster).settings.is_read_only:
        raise Denied(
            403,
            "READ_ONLY",
            "The console, or this cluster, is in read-only mode.",
            "Start the console without read-only mode to make changes.",
        )


def run(
    console: Console,
    caller: Caller,
    operation: Operation,
    cluster: str,
    arguments: dict[str, Any],
) -> Any:
    """Run an operation that `authorize` has allowed, and write changes to the audit log."""
    _check_rights(caller, operation, cluster, arguments)
    connection = console.clusters.get(cluster) if operation.has_cluster else None
    passed = {
        "connection": connection,
        "masking": caller.reader.rules,
        "reader": caller.reader,
        "caller": caller.actor.user,
        "masks": console.masking,
        "catalogue": console.clusters,
        "history": console.history,
        "timeline": console.timeline,
        "topologies": console.topologies,
        "throttled_moves": console.throttled_moves,
        "alerts": console.alerts,
        "queries": console.queries,
    }
    if not operation.is_change:
        return operation.run(arguments, passed)
    try:
        result = operation.run(arguments, passed)
    except (OttlaError, OSError) as error:
        _audit_failure(console, caller, operation, connection, error)
        raise
    change = change_of(result)
    if change is not None:
        names = sorted({*change.before, *change.after})
        details = {
            name: f"{change.before.get(name, '–')} → {change.after.get(name, '–')}"
            for name in names
        }
        notes = ("through the API", *change.notes)
        console.audit.write(
            caller.actor,
            change.action,
            cluster=change.cluster,
            target=change.resource,
            details=details | {"notes": "; ".join(notes)},
        )
    return result


def _check_rights(
    caller: Caller, operation: Operation, cluster: str, arguments: Mapping[str, Any]
) -> None:
    """Raise Denied if the rights of a user in some clusters and topics do not allow a call.

    Operations of no cluster are for users with a role everywhere.
    """
    reader = caller.reader
    if reader.role is Role.ADMIN or not reader.rights:
        return
    topics: set[str | None] = {*_topics_of(arguments)}
    needed = operation.role
    roles = [reader.role_in(cluster, topic) for topic in topics or {None}]
    if not operation.has_cluster or any(role is None or role < needed for role in roles):
        raise Denied(
            403,
            "FORBIDDEN",
            f"{operation.name} needs the role {needed.label} in this cluster and for its topics.",
            "Ask an admin of the console for the right.",
        )


def _topics_of(value: Any) -> Iterator[str]:
    """Yield the topics that arguments name, also in the fields of objects and in lists."""
    if isinstance(value, Mapping):
        fields = dict(value)
    elif is_dataclass(value) and not isinstance(value, type):
        fields = {item.name: getattr(value, item.name) for item in dataclass_fields(value)}
    else:
        if isinstance(value, list | tuple):
            for item in value:
                yield from _topics_of(item)
        return
    for name, item in fields.items():
        if name in _TOPIC_NAMES and isinstance(item, str):
            yield item
        elif name in _TOPIC_LISTS and isinstance(item, list | tuple):
            yield from map(str, item)
        else:
            yield from _topics_of(item)


def _audit_failure(
    console: Console,
    caller: Caller,
    operation: Operation,
    connection: ClusterConnection | None,
    error: Exception,
) -> None:
    console.audit.write(
        caller.actor,
        operation.name,
        cluster="" if connection is None else connection.name,
        target=operation.path.rpartition("/")[2],
        result=str(error) or type(error).__name__,
    )


def _user(console: Console, request: Request) -> tuple[User, str]:
    """Return the user and the key of the session; empty with a password."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        return _login(console, request, credentials), ""
    session = find_session(console, request)
    if session is None:
        raise UNAUTHENTICATED
    if request.method != "GET" and not session.has_csrf(request.headers.get(_CSRF_HEADER, "")):
        raise Denied(
            403,
            "CSRF",
            f"The header {_CSRF_HEADER} is missing or out of date.",
            "Load the page again, or use HTTP Basic authentication.",
        )
    return session.user, session.key


def _login(console: Console, request: Request, credentials: str) -> User:
    try:
        name, _, password = base64.b64decode(credentials, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise UNAUTHENTICATED from None
    now = console.clock.monotonic()
    wait_s = console.attempts.wait_s(request.client, name, now)
    if wait_s > 0:
        raise Denied(
            429,
            "TOO_MANY_REQUESTS",
            f"Too many failed logins: wait {math.ceil(wait_s)} s.",
            "Check the user name and the password.",
        )
    # Counted before the password is checked: parallel attempts must not outrun the limit.
    console.attempts.failed(request.client, name, now)
    user = console.users.login(name, password)
    if user is None:
        console.audit.write(Actor(name[:64], request.client), "login", result="failed")
        raise UNAUTHENTICATED
    console.attempts.succeeded(request.client, name)
    return user
