"""The changes that a request has made, from the request and its response. Pure.

A change names one resource. The results of a request that only validates are no changes.
"""

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, NamedTuple

from ottla.security.acls import AclOperation, ResourceType
from ottla.server.audit.record import NO_RESOURCE, Details, Resource

Right = tuple[ResourceType, str]


class Exchange(NamedTuple):
    """A request and its response; `subject` is a name that was looked up before the request."""

    request: Any
    response: Any
    subject: str = ""


class AuditedChange(NamedTuple):
    """A resource, the error code of its change, and what was changed.

    `right` is the resource whose access control list may have allowed the change; the other one is
    the cluster's.
    """

    resource: Resource
    error_code: int = 0
    details: Details = MappingProxyType({})
    right: Right | None = None


Changes = Callable[[Exchange], Iterator[AuditedChange]]


class AuditedApi(NamedTuple):
    """How the requests of one API are audited: the operation that they need, and their changes.

    `rule` is the reason if no access control list decides. `subject` returns a name that only the
    broker knows, from the broker and the request, before the request is handled.
    """

    operation: AclOperation
    changes: Changes
    rule: str = ""
    subject: Callable[[Any, Any], str] | None = None


def failure(error_code: int) -> AuditedChange:
    """Return the change of a request that has failed as a whole."""
    return AuditedChange(NO_RESOURCE, error_code)
