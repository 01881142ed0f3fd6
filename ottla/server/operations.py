"""The operations that a principal may do, as the bit fields of KIP-430; all without an authorizer.

Bits are the codes of org.apache.kafka.common.acl.AclOperation; the operations of a type of resource
are those of AclEntry.supportedOperations.
"""

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
