"""The audit log of a broker: the one place through which every record passes.

Changes that have succeeded are always written. Denials, failed logins and failed changes are
limited (`limits`), because clients can provoke them without a right.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.base.clock import Clock
from ottla.base.loading import deferred_module
from ottla.base.logs import AUDIT, FIELDS
from ottla.base.options import Snapshot
from ottla.base.tasks import Tasks
from ottla.net.connection import Connection
from ottla.server.audit.record import (
    DENIED,
    FAILED,
    NO_RESOURCE,
    SUCCESS,
    TEXT_MAX,
    AuditEvent,
    AuditRecord,
    Details,
    Origin,
    Resource,
)
from ottla.server.authentication.identity import (
    FailedLogin,
    has_proven_id,
    is_broker,
    principal_of,
)
from ottla.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from ottla.security import acls
    from ottla.server.audit import limits
else:
    # The first event needs them.
    acls = deferred_module("ottla.security.acls")
    limits = deferred_module("ottla.server.audit.limits")

_CERTIFICATE = "certificate"
NO_AUTHORIZER = "no authorizer"

_audit = logging.getLogger(AUDIT)


class Sent(Protocol):
    """The parts of a request's context that a record needs."""

    @property
    def connection(self) -> Connection:
        """The connection of the sender."""
        ...

    @property
    def api_key(self) -> int:
        """The key of the API."""
        ...

    @property
    def client_id(self) -> str | None:
        """The client id in the header of the request."""
        ...


class Asked(Sent, Protocol):
    """The rights of the sender of a request (ottla.server.authorization.access.Access)."""

    def rule(
        self, operation: "acls.AclOperation", resource_type: "acls.ResourceType", name: str
    ) -> str:
        """Return the rule that allows or denies an operation."""
        ...


class Requested(Sent, Protocol):
    """The context of a request."""

    # The rights of the sender; None without an authorizer.
    access: Any


class Subject(NamedTuple):
    """The operation of a request, and the resource that it names."""

    api: str
    operation: str
    resource: Resource = NO_RESOURCE

    @classmethod
    def of(
        cls,
        request: Sent,
        operation: "acls.AclOperation",
        resource_type: "acls.ResourceType",
        name: str,
    ) -> "Subject":
        """Return the subject of a request about one resource."""
        api = ApiKey(request.api_key).name
        return cls(api, operation.name, Resource(resource_type.name, name))


def is_exempt(connection: Connection, api_key: int) -> bool:
    """Return True for the work of brokers, which is not written.

    A person may know the password of the brokers' user: of its requests only markers are exempt,
    which brokers write at the end of each transaction.
    """
    is_marker = api_key == ApiKey.WRITE_TXN_MARKERS
    return has_proven_id(connection) or (is_marker and is_broker(connection))


def origin_of(connection: Connection, client_id: str | None) -> Origin:
    """Return the sender of a request."""
    return Origin(
        principal_of(connection).text()[:TEXT_MAX],
        str(connection.peer_address[0]),
        connection.listener_name,
        None if client_id is None else client_id[:TEXT_MAX],
    )


class Sink(Protocol):
    """A destination of records."""

    lost_count: int

    async def open(self) -> None:
        """Make the destination ready; ConfigError if that is impossible."""
        ...

    def write(self, record: AuditRecord) -> None:
        """Write a record, now or soon; never raises and never waits."""
        ...

    async def close(self) -> None:
        """Write the records that are waiting; idempotent."""
        ...


class LoggerSink:
    """Writes to the logger `ottla.audit`."""

    lost_count = 0

    async def open(self) -> None:
        """Do nothing."""

    def write(self, record: AuditRecord) -> None:
        """Log the record as one line; in the JSON format of the log its fields are the line's."""
        _audit.info("%s", record.line(), extra={FIELDS: record.fields()})

    async def close(self) -> None:
        """Do nothing."""


class AuditLog:
    """Writes the records of the events that the option audit.log.events names."""

    def __init__(
        self, options: Snapshot, broker_id: int, sink: Sink, clock: Clock, tasks: Tasks
    ) -> None:
        self.counts: Counter[AuditEvent] = Counter()
        self.suppressed_count = 0
        self._events = {AuditEvent(name) for name in options.strings("audit.log.events")}
        self._broker_id = broker_id
        self._sink = sink
        self._clock = clock
        self._tasks = tasks
        self._limiter: limits.Limiter | None = None
        self._reporting: asyncio.Task[None] | None = None

    @property
    def lost_count(self) -> int:
        """The number of records that could not be written."""
        return self._sink.lost_count

    def change(
        self, origin: Origin, subject: Subject, *, rule: str, result: str, details: Details
    ) -> None:
        """Write an administrative change; one that has failed as far as the limits allow."""
        if result != SUCCESS:
            question = subject.api, _short(subject.resource), result
            if not self._admits(AuditEvent.CHANGE, origin, question):
                return
        self._put(AuditEvent.CHANGE, origin, subject, rule, result, details)

    def topic_created(self, request: Requested, name: str) -> None:
        """Write that a request which is no administrative one has created a topic."""
        if is_exempt(request.connection, request.api_key):
            return
        origin, access = origin_of(request.connection, request.client_id), request.access
        operation, kind = acls.AclOperation.CREATE, acls.ResourceType.TOPIC
        rule = NO_AUTHORIZER
        if access is not None:
            is_by_cluster = access.shows(acls.ResourceType.CLUSTER, acls.CLUSTER_NAME, operation)
            on_cluster = access.rule(operation, acls.ResourceType.CLUSTER, acls.CLUSTER_NAME)
            rule = on_cluster if is_by_cluster else access.rule(operation, kind, name)
        subject = Subject.of(request, operation, kind, name)
        self.change(origin, subject, rule=rule, result=SUCCESS, details={"automatic": True})

    def denied(
        self,
        access: Asked,
        operation: "acls.AclOperation",
        resource_type: "acls.ResourceType",
        name: str,
    ) -> None:
        """Write that the authorizer has denied a request."""
        # A request may name thousands of resources: only the first lines of them are written.
        if self._limiter is not None and self._limiter.is_exhausted(
            access.connection.peer_address[0], self._clock.monotonic()
        ):
            self._suppress(AuditEvent.DENIAL, origin_of(access.connection, access.client_id))
            return
        self._deny(access, Subject.of(access, operation, resource_type, name), access)

    def refused(self, request: Sent, rule: str) -> None:
        """Write that a request which only brokers may send was denied."""
        subject = Subject.of(
            request, acls.AclOperation.CLUSTER_ACTION, acls.ResourceType.CLUSTER, acls.CLUSTER_NAME
        )
        self._deny(request, subject, rule)

    def _deny(self, request: Sent, subject: Subject, rule: "Asked | str") -> None:
        origin = origin_of(request.connection, request.client_id)
        resource = _short(subject.resource)
        if self._admits(AuditEvent.DENIAL, origin, (subject.operation, resource)):
            if not isinstance(rule, str):
                kind = acls.ResourceType[resource.kind]
                rule = rule.rule(acls.AclOperation[subject.operation], kind, subject.resource.name)
            self._put(AuditEvent.DENIAL, origin, subject, rule, DENIED, {})

    def login_failed(
        self, connection: Connection, client_id: str | None, login: FailedLogin
    ) -> None:
        """Write that a client could not prove its identity; the principal is the one it claims."""
        origin = origin_of(connection, client_id)
        if login.user:
            origin = origin._replace(principal=f"User:{login.user}"[:TEXT_MAX])
        if self._admits(AuditEvent.FAILED_LOGIN, origin, login.mechanism):
            details: Details = {"mechanism": login.mechanism, "reason": login.reason}
            self._put(AuditEvent.FAILED_LOGIN, origin, Subject("", ""), "", FAILED, details)

    def handshake_failed(self, listener: str, address: str, reason: str) -> None:
        """Write that a client has no certificate, or one that is not trusted."""
        origin = Origin("", address, listener)
        if self._admits(AuditEvent.FAILED_LOGIN, origin, (_CERTIFICATE, reason)):
            details: Details = {"mechanism": _CERTIFICATE, "reason": reason}
            self._put(AuditEvent.FAILED_LOGIN, origin, Subject("", ""), "", FAILED, details)

    def _admits(self, event: AuditEvent, origin: Origin, question: Hashable) -> bool:
        """Return True if a line that clients can provoke is to be written."""
        if event not in self._events:
            return False
        if self._limiter is None:
            self._limiter = limits.Limiter()
        if self._limiter.admits(event, origin, question, self._clock.monotonic()):
            return True
        self._note_suppressed()
        return False

    def _suppress(self, event: AuditEvent, origin: Origin) -> None:
        """Count a line that is not admitted, whatever its question is."""
        if event in self._events and self._limiter is not None:
            self._limiter.count(event, origin)
            self._note_suppressed()

    def _note_suppressed(self) -> None:
        self.suppressed_count += 1
        self._report_later()

    def _put(
        self,
        event: AuditEvent,
        origin: Origin,
        subject: Subject,
        rule: str,
        result: str,
        details: Details,
    ) -> None:
        if event not in self._events:
            return
        self._write(
            AuditRecord(
                time_ms=self._clock.time_ms(),
                broker_id=self._broker_id,
                event=event,
                origin=origin,
                api=subject.api,
                operation=subject.operation,
                resource=subject.resource,
                rule=rule,
                result=result,
                details=details,
            )
        )

    def _write(self, record: AuditRecord) -> None:
        self.counts[record.event] += 1
        self._sink.write(record)

    # -- records that were suppressed -------------------------------------------------------------

    def _report_later(self) -> None:
        if self._reporting is None or self._reporting.done():
            self._reporting = self._tasks.spawn(self._wait_and_report(), "audit log")

    async def _wait_and_report(self) -> None:
        await self._clock.sleep(limits.REPEAT_SECONDS)
        self._report()

    def _report(self) -> None:
        if self._limiter is None:
            return
        for suppressed in self._limiter.report():
            self._write(
                AuditRecord(
                    time_ms=self._clock.time_ms(),
                    broker_id=self._broker_id,
                    event=suppressed.event,
                    origin=suppressed.origin,
                    result=DENIED if suppressed.event is AuditEvent.DENIAL else FAILED,
                    suppressed_count=suppressed.lines_count,
                )
            )

    async def open(self) -> None:
        """Make the destination ready; ConfigError if that is impossible."""
        await self._sink.open()

    async def close(self) -> None:
        """Write what is waiting; idempotent."""
        self._report()
        await self._sink.close()


def _short(resource: Resource) -> Resource:
    """Return a resource without the rest of a name of which the record has the beginning, too."""
    return resource._replace(name=resource.name[:TEXT_MAX])
