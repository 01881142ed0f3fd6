"""The access control lists of a cluster's nodes, by the rules of Apache Kafka's ZkData.

With `zookeeper.set.acl`, all may read a node, and only its creator may change it. Only its creator
may read one that contains secrets. The paths of clients from before Kafka 0.9 are open to all.
"""

from ottla.base.options import Snapshot
from ottla.cluster.acl_znodes import AclChangeNode, AclNode
from ottla.cluster.secret_znodes import BrokerSecretNode
from ottla.cluster.zk import acls
from ottla.cluster.zk.acls import AclOf, NodeAcl
from ottla.cluster.znodes import (
    ConfigNode,
    ControllerEpochNode,
    ControllerNode,
    DelegationTokensNode,
    FeatureNode,
    IsrChangeNode,
    LogDirEventNode,
    ProducerIdBlockNode,
)

_CONSUMERS = "/consumers"
_MIGRATION = "/migration"
# What Apache Kafka secures, in its order.
SECURE_ROOTS = (
    "/admin",
    "/brokers",
    "/cluster",
    ConfigNode.ROOT,
    ControllerNode.PATH,
    ControllerEpochNode.PATH,
    IsrChangeNode.PARENT,
    ProducerIdBlockNode.PATH,
    LogDirEventNode.PARENT,
    DelegationTokensNode.ROOT,
    AclNode.EXTENDED_ROOT,
    _MIGRATION,
    FeatureNode.PATH,
    AclNode.LITERAL_ROOT,
    AclChangeNode.LITERAL_PARENT,
    AclNode.root("prefixed"),
    AclChangeNode.EXTENDED_PARENT,
)
# A migration does not create these.
NOT_CREATED = (ControllerNode.PATH, _MIGRATION)
# The nodes that Apache Kafka does not have.
OTTLA_ROOT = BrokerSecretNode.PATH.rpartition("/")[0]
_SENSITIVE = (
    ConfigNode.type_path(ConfigNode.USERS),
    ConfigNode.type_path(ConfigNode.BROKERS),
    DelegationTokensNode.PATH,
    OTTLA_ROOT,
)


def secured(path: str) -> tuple[NodeAcl, ...]:
    """Return the list of a node in a secured tree."""
    if path == _CONSUMERS:
        return acls.OPEN
    return acls.CREATOR_ONLY if path.startswith(_SENSITIVE) else acls.READABLE


def unsecured(path: str) -> tuple[NodeAcl, ...]:
    """Return the list of a node in an unsecured tree."""
    return acls.OPEN


def acl_of(options: Snapshot) -> AclOf | None:
    """Return the lists of the nodes that a broker creates; None if its nodes are open to all."""
    return secured if options.boolean("zookeeper.set.acl") else None
