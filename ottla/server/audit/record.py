"""One record of the audit log, and its line of JSON. Pure.

Clients choose names, client ids and users. A line has ASCII characters only, with every control
character escaped, so that no name can begin a line, look like another field, or control a terminal.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

Value = str | int | bool | None
Details = Mapping[str, "Value | Sequence[Value]"]

SUCCESS, DENIED, FAILED = "success", "denied", "failed"

# Longer texts are cut: a client may send names of 32 KiB.
TEXT_MAX = 512
_DETAILS_MAX = 50


class AuditEvent(Enum):
    """The kind of a record, by the names of the option audit.log.events."""

    CHANGE = "changes"
    DENIAL = "denials"
    FAILED_LOGIN = "failed-logins"


class Origin(NamedTuple):
    """The sender of a request: its principal, address, listener and client id."""

    principal: str
    address: str
    listener: str = ""
    client_id: str | None = None


class Resource(NamedTuple):
    """The resource of a record; `partition` is None unless it is a partition of a topic."""

    kind: str
    name: str
    partition: int | None = None


NO_RESOURCE = Resource("", "")
_EVENTS = {
    AuditEvent.CHANGE: "change",
    AuditEvent.DENIAL: "denial",
    AuditEvent.FAILED_LOGIN: "failed login",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One line of the audit log.

    `rule` is the entry of an access control list that decided, `super user`, or another reason.
    `result` is `success`, `denied`, `failed`, or the name of an error. `suppressed_count` is not 0
    if the record counts similar ones that were not written.
    """

    time_ms: int
    broker_id: int
    event: AuditEvent
    origin: Origin
    api: str = ""
    operation: str = ""
    resource: Resource = NO_RESOURCE
    rule: str = ""
    result: str = ""
    details: Details = field(default_factory=dict)
    suppressed_count: int = 0

    def fields(self) -> dict[str, object]:
        """Return the fields of the line, in its order; those without a value are left out."""
        origin, resource = self.origin, self.resource
        values = {
            "time": _moment(self.time_ms),
            "event": _EVENTS[self.event],
            "broker": self.broker_id,
            "principal": origin.principal,
            "address": origin.address,
            "listener": origin.listener,
            "client_id": origin.client_id,
            "api": self.api,
            "operation": self.operation,
            "resource_type": resource.kind,
            "resource": resource.name,
            "partition": resource.partition,
            "rule": self.rule,
            "result": self.result,
            "suppressed": self.suppressed_count or None,
            "details": _bounded(self.details),
        }
        return {
            name: _short(value) for name, value in values.items() if value not in (None, "", {})
        }

    def line(self) -> str:
        """Return the record as one JSON object, without a line break."""
        return to_line(self.fields())


def to_line(fields: Mapping[str, object]) -> str:
    """Return fields as one line of ASCII characters without control characters."""
    return json.dumps(fields).replace("\x7f", "\\u007f")


def _moment(time_ms: int) -> str:
    seconds, milliseconds = divmod(time_ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{milliseconds:03d}Z"


def _bounded(details: Details) -> dict[str, object]:
    values = list(details.items())
    bounded = {name[:TEXT_MAX]: _short(value) for name, value in values[:_DETAILS_MAX]}
    if len(values) > _DETAILS_MAX:
        bounded["…"] = len(values) - _DETAILS_MAX
    return bounded


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > TEXT_MAX:
        return f"{value[:TEXT_MAX]}…"
    if isinstance(value, list | tuple):
        return [_short(item) for item in value[:_DETAILS_MAX]]
    return value
