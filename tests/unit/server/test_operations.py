"""The operations of each type of resource, as bit fields."""

import pytest

from ottla.security.acls import AclOperation, ResourceType, operations_on
from ottla.server.operations import ON_CLUSTER, ON_GROUP, ON_TOPIC


@pytest.mark.parametrize(
    ("bits", "resource_type"),
    [
        (ON_TOPIC, ResourceType.TOPIC),
        (ON_GROUP, ResourceType.GROUP),
        (ON_CLUSTER, ResourceType.CLUSTER),
    ],
)
def test_bits_are_the_operations_that_entries_can_have(
    bits: int, resource_type: ResourceType
) -> None:
    """The bit fields are constants, because a broker without authorizer loads no ACLs."""
    operations = set(operations_on(resource_type)) - {AclOperation.ALL}
    assert bits == sum(1 << operation for operation in operations)
