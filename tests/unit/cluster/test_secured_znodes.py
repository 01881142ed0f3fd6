"""The access control lists of a cluster's nodes: the rules of Apache Kafka's ZkData."""

import pytest

from ottla.cluster.acl_znodes import ACL_PATHS
from ottla.cluster.secret_znodes import BrokerSecretNode, LoginSecretNode
from ottla.cluster.secured_znodes import OTTLA_ROOT, SECURE_ROOTS, secured, unsecured
from ottla.cluster.zk.acls import CREATOR_ONLY, OPEN, READABLE, NodeAcl
from ottla.cluster.znodes import PERSISTENT_PATHS


@pytest.mark.parametrize(
    ("path", "entries"),
    [
        ("/", READABLE),
        ("/kafka/cluster", READABLE),
        ("/config", READABLE),
        ("/config/topics/clicks", READABLE),
        ("/config/users", CREATOR_ONLY),
        ("/config/users/alice/clients/app", CREATOR_ONLY),
        ("/config/brokers/1", CREATOR_ONLY),
        ("/delegation_token/tokens/1", CREATOR_ONLY),
        ("/delegation_token", READABLE),
        (BrokerSecretNode.PATH, CREATOR_ONLY),
        (LoginSecretNode.PATH, CREATOR_ONLY),
        ("/consumers", OPEN),
    ],
)
def test_secured_nodes_are_readable_unless_they_contain_secrets(
    path: str, entries: tuple[NodeAcl, ...]
) -> None:
    """Passwords, tokens and the brokers' secret are for the creator; old clients write offsets."""
    assert secured(path) == entries
    assert unsecured(path) == OPEN


@pytest.mark.parametrize("path", [*PERSISTENT_PATHS, *ACL_PATHS, BrokerSecretNode.PATH])
def test_every_path_of_a_broker_is_secured(path: str) -> None:
    """No node that a broker creates at its start is left out by a migration."""
    assert path.startswith((*SECURE_ROOTS, OTTLA_ROOT))
