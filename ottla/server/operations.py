"""The operations that a sender may do, as the bit fields of KIP-430; all without an authorizer.

Bits are the codes of org.apache.kafka.common.acl.AclOperation; the operations of a type of resource
follow AclEntry.supportedOperations.
"""

from typing import TYPE_CHECKING

from ottla.base.loading import deferred_module

if TYPE_CHECKING:
    from ottla.security import acls
    from ottla.server.authorization.access import Access
else:
    acls = deferred_module("ottla.security.acls")

NOT_ASKED = -(2**31)

READ = 1 << 3
WRITE = 1 << 4
CREATE = 1 << 5
DELETE = 1 << 6
ALTER = 1 << 7
DESCRIBE = 1 << 8
CLUSTER_ACTION = 1 << 9
DESCRIBE_CONFIGS = 1 << 10
ALTER_CONFIGS = 1 << 11
IDEMPOTENT_WRITE = 1 << 12

ON_TOPIC = READ | WRITE | CREATE | DELETE | ALTER | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS
ON_GROUP = READ | DELETE | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS
ON_CLUSTER = (
    CREATE | ALTER | DESCRIBE | CLUSTER_ACTION | DESCRIBE_CONFIGS | ALTER_CONFIGS | IDEMPOTENT_WRITE
)


def on_topic(access: "Access | None", name: str | None) -> int:
    """Return the operations that the sender may do to a topic."""
    if access is None or name is None:
        return ON_TOPIC
    return access.operations(acls.ResourceType.TOPIC, name, ON_TOPIC)


def on_group(access: "Access | None", name: str) -> int:
    """Return the operations that the sender may do to a group."""
    return (
        ON_GROUP if access is None else access.operations(acls.ResourceType.GROUP, name, ON_GROUP)
    )


def on_cluster(access: "Access | None") -> int:
    """Return the operations that the sender may do to the cluster; none without DESCRIBE."""
    if access is None:
        return ON_CLUSTER
    if not access.has_cluster_right(acls.AclOperation.DESCRIBE):
        return 0
    return access.operations(acls.ResourceType.CLUSTER, acls.CLUSTER_NAME, ON_CLUSTER)
