"""The checks of an entry before it is sent to a cluster."""

import pytest

from ottla.base.errors import ConfigError
from ottla.client.admin.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from ottla.operations.access.entries import check_addable
from ottla.security.acls import problem_of


def binding(
    resource_type: ResourceType = ResourceType.TOPIC,
    operation: AclOperation = AclOperation.READ,
    name: str = "orders",
    principal: str = "User:ann",
    host: str = "*",
) -> AclBinding:
    """Return an entry that allows an operation."""
    entry = AccessControlEntry(principal, host, operation, PermissionType.ALLOW)
    return AclBinding(ResourcePattern(resource_type, name), entry)


@pytest.mark.parametrize("host", ["*", "192.0.2.1", "::1"])
@pytest.mark.parametrize("operation", [AclOperation.READ, AclOperation.ALL])
def test_entry_that_has_an_effect_can_be_added(host: str, operation: AclOperation) -> None:
    """Clients are compared by address; ALL is an operation on every resource."""
    entry = binding(operation=operation, host=host)
    check_addable(entry)
    assert problem_of(entry) == ""


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (binding(ResourceType.GROUP, AclOperation.WRITE), r"GROUP only supports .*\[READ, "),
        (binding(ResourceType.USER), r"\[CREATE_TOKENS, DESCRIBE_TOKENS, ALL\]"),
        (binding(ResourceType.CLUSTER, AclOperation.ALTER), "The only valid name"),
        (binding(name="a/b"), "invalid resource name"),
        (binding(name=""), "empty resource name"),
        (binding(host=""), "empty host"),
        (binding(host="example.com"), "nor an IP address"),
        (binding(principal="ann"), "no type or no name"),
        (binding(principal="User:"), "no type or no name"),
        (binding(operation=AclOperation.UNKNOWN), "unknown elements"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_entry_that_is_refused_or_has_no_effect_is_an_error(
    refused: AclBinding, reason: str
) -> None:
    """A broker accepts some of them, and no request ever matches those."""
    with pytest.raises(ConfigError, match=reason):
        check_addable(refused)
