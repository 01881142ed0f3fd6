"""The cluster: its id, brokers and controller (DescribeCluster, KIP-700; UnregisterBroker), and the
APIs that a broker serves.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.base.loading import deferred_module
from ottla.client.admin.answers import check
from ottla.client.brokers import Brokers, Controllers
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

# Few callers ask for authorized operations.
if TYPE_CHECKING:
    from ottla.client.admin import acls
else:
    acls = deferred_module("ottla.client.admin.acls")

_BROKERS, _CONTROLLERS = 1, 2


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker or controller, with the address that it advertises.

    A fenced broker is registered, but does not send heartbeats (KIP-1073).
    """

    node_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster; `controller_id` is -1 without a controller."""

    cluster_id: str
    controller_id: int
    brokers: tuple[Broker, ...]
    authorized_operations: "frozenset[acls.AclOperation] | None" = None
    """What the user may do with the cluster, if it was requested (KIP-430)."""


def describe_cluster(
    brokers: Brokers,
    *,
    include_authorized_operations: bool = False,
    include_fenced_brokers: bool = False,
) -> ClusterDescription:
    """Return the cluster's id, controller and brokers, optionally also the fenced ones.

    One of the brokers describes it; controllers describe themselves."""
    endpoint_type = _CONTROLLERS if isinstance(brokers, Controllers) else _BROKERS
    request = DescribeClusterRequest(
        endpoint_type=endpoint_type,
        include_cluster_authorized_operations=include_authorized_operations,
        include_fenced_brokers=include_fenced_brokers,
    )

    def attempt() -> ClusterDescription:
        response = brokers.ask(request, DescribeClusterResponse)
        check(response.error_code, response.error_message)
        return ClusterDescription(
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            brokers=tuple(
                Broker(row.broker_id, row.host, row.port, row.rack, row.is_fenced)
                for row in sorted(response.brokers, key=lambda row: row.broker_id)
            ),
            authorized_operations=acls.operations_of(response.cluster_authorized_operations)
            if include_authorized_operations
            else None,
        )

    return brokers.retry(attempt)


def describe_apis(brokers: Brokers, node_id: int) -> dict[int, tuple[int, int]]:
    """Return the lowest and the highest version of each API that a broker serves, by key."""
    request = ApiVersionsRequest(client_software_name="ottla", client_software_version="1")

    def attempt() -> dict[int, tuple[int, int]]:
        response = brokers.ask_node(node_id, request, ApiVersionsResponse)
        check(response.error_code)
        return {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}

    return brokers.retry(attempt)


def unregister_broker(brokers: Brokers, node_id: int) -> None:
    """Remove the registration of a broker that is gone; Unsupported unless the cluster is KRaft."""
    request = UnregisterBrokerRequest(broker_id=node_id)

    def attempt() -> None:
        response = brokers.ask_controller(request, UnregisterBrokerResponse)
        check(response.error_code, response.error_message)

    brokers.retry(attempt)
