"""Access control lists: describe, create, delete (DescribeAcls, CreateAcls, DeleteAcls; KIP-140).

The types of entries are defined in `ottla.security.acls`.
"""

from collections.abc import Iterable
from typing import Any

from ottla.base.errors import ApiError
from ottla.client.admin.answers import check, error_of
from ottla.client.brokers import Brokers
from ottla.security.acls import (
    ANY,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from ottla.wire.messages import create_acls as creating
from ottla.wire.messages import delete_acls as deleting
from ottla.wire.messages import describe_acls as describing

__all__ = [
    "ANY",
    "AccessControlEntry",
    "AclBinding",
    "AclOperation",
    "PatternType",
    "PermissionType",
    "ResourcePattern",
    "ResourceType",
    "create_acls",
    "delete_acls",
    "describe_acls",
    "operations_of",
]

# The value of a bit field of operations that was not requested.
_NOT_REPORTED = -0x80000000


def operations_of(bits: int) -> frozenset[AclOperation] | None:
    """Return the operations of a bit field, in which bit n is operation n (KIP-430).

    None if the broker did not report them; operations of newer brokers are left out.
    """
    if bits == _NOT_REPORTED:
        return None
    return frozenset(
        operation
        for operation in AclOperation
        if operation > AclOperation.ALL and bits >> operation & 1
    )


def _filter_fields(matching: AclBinding) -> dict[str, Any]:
    """Return the fields of a filter, which have the same names in both requests."""
    pattern, entry = matching
    return {
        "resource_type_filter": pattern.resource_type,
        "resource_name_filter": pattern.name,
        "pattern_type_filter": pattern.pattern_type,
        "principal_filter": entry.principal,
        "host_filter": entry.host,
        "operation": entry.operation,
        "permission_type": entry.permission_type,
    }


def describe_acls(brokers: Brokers, matching: AclBinding = ANY) -> list[AclBinding]:
    """Return the bindings that match a filter, in the broker's order.

    ApiError SECURITY_DISABLED if the brokers have no authorizer.
    """
    request = describing.DescribeAclsRequest(**_filter_fields(matching))

    def attempt() -> list[AclBinding]:
        response = brokers.ask(request, describing.DescribeAclsResponse)
        check(response.error_code, response.error_message)
        return [_binding(resource, acl) for resource in response.resources for acl in resource.acls]

    return brokers.retry(attempt)


def create_acls(brokers: Brokers, bindings: Iterable[AclBinding]) -> None:
    """Add bindings; those that exist are not an error.

    Raises the ApiError of the first binding that was rejected; the others are added.
    """
    request = creating.CreateAclsRequest(
        creations=[
            creating.AclCreation(
                resource_type=pattern.resource_type,
                resource_name=pattern.name or "",
                resource_pattern_type=pattern.pattern_type,
                principal=entry.principal or "",
                host=entry.host or "*",
                operation=entry.operation,
                permission_type=entry.permission_type,
            )
            for pattern, entry in bindings
        ]
    )

    def attempt() -> None:
        response = brokers.ask(request, creating.CreateAclsResponse)
        for result in response.results:
            check(result.error_code, result.error_message)

    brokers.retry(attempt)


def delete_acls(brokers: Brokers, filters: Iterable[AclBinding]) -> list[AclBinding]:
    """Delete the bindings that match at least one of the filters, and return them.

    Raises the first ApiError; the bindings of other filters may have been deleted.
    """
    request = deleting.DeleteAclsRequest(
        filters=[deleting.DeleteAclsFilter(**_filter_fields(matching)) for matching in filters]
    )
    # A retry must not forget what an earlier attempt has deleted.
    deleted: dict[AclBinding, None] = {}

    def attempt() -> None:
        response = brokers.ask(request, deleting.DeleteAclsResponse)
        error: ApiError | None = None
        for result in response.filter_results:
            error = error or error_of(result.error_code, result.error_message)
            for row in result.matching_acls:
                error = error or error_of(row.error_code, row.error_message)
                if not row.error_code:
                    deleted[_binding(row, row)] = None
        if error is not None:
            raise error

    brokers.retry(attempt)
    return list(deleted)


def _binding(
    resource: describing.DescribeAclsResource | deleting.DeleteAclsMatchingAcl,
    acl: describing.AclDescription | deleting.DeleteAclsMatchingAcl,
) -> AclBinding:
    return AclBinding(
        ResourcePattern(
            ResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
        ),
        AccessControlEntry(
            acl.principal,
            acl.host,
            AclOperation(acl.operation),
            PermissionType(acl.permission_type),
        ),
    )
