"""Operations on clusters, brokers, and clients that push metrics."""

from dataclasses import dataclass

from ottla.console.accounts.roles import Role
from ottla.console.api.operations import CLUSTER_PATH, Operation
from ottla.console.catalogue import ClusterCatalogue
from ottla.console.model.brokers import describe_broker, list_api_versions, list_brokers
from ottla.console.model.overview import read_overview
from ottla.console.model.zookeeper import Znode, has_tree, read_znode
from ottla.operations.survey.clients import describe_client, list_clients
from ottla.operations.survey.connections import ClusterConnection


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A cluster of the console; `has_zookeeper` if its ZooKeeper tree can be read.

    `security_protocol` is that of the connections to its brokers.
    """

    name: str
    bootstrap: str
    security_protocol: str
    is_read_only: bool
    has_zookeeper: bool


def list_clusters(catalogue: ClusterCatalogue) -> list[ClusterRow]:
    """Return the clusters of the console. Their names are part of the paths of all other
    operations.
    """
    connections = [catalogue.get(name) for name in catalogue.names()]
    return [
        ClusterRow(
            connection.name,
            connection.bootstrap,
            connection.settings.security_protocol,
            connection.settings.is_read_only,
            has_tree(connection),
        )
        for connection in connections
    ]


def get_znode(connection: ClusterConnection, *, path: str = "/") -> Znode:
    """Return a node of the cluster's ZooKeeper tree, with the names of its children."""
    return read_znode(connection, path)


_BROKER = f"{CLUSTER_PATH}/brokers/{{node_id}}"
_CLIENTS = f"{CLUSTER_PATH}/clients"

OPERATIONS = (
    Operation("GET", "/clusters", Role.VIEWER, list_clusters, "clusters"),
    Operation("GET", f"{CLUSTER_PATH}/overview", Role.VIEWER, read_overview, "clusters"),
    Operation("GET", f"{CLUSTER_PATH}/brokers", Role.VIEWER, list_brokers, "brokers"),
    Operation("GET", _BROKER, Role.VIEWER, describe_broker, "brokers"),
    Operation("GET", f"{_BROKER}/api-versions", Role.VIEWER, list_api_versions, "brokers"),
    Operation("GET", _CLIENTS, Role.VIEWER, list_clients, "clients"),
    Operation("GET", f"{_CLIENTS}/{{instance_id}}", Role.VIEWER, describe_client, "clients"),
    Operation("GET", f"{CLUSTER_PATH}/zookeeper", Role.ADMIN, get_znode, "zookeeper"),
)
