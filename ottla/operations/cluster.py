"""Levels of features (KIP-584), voters of the metadata quorum (KIP-853), former brokers."""

from collections.abc import Mapping, Sequence

from ottla.base.uuids import uuid_text
from ottla.client.admin import features
from ottla.client.admin.apache import quorum
from ottla.client.admin.cluster import unregister_broker
from ottla.client.admin.features import UpgradeType
from ottla.client.brokers import Brokers
from ottla.operations.changes import Change


def update_features(
    brokers: Brokers,
    levels: Mapping[str, int],
    *,
    upgrade_type: UpgradeType,
    validate_only: bool = False,
    cluster: str = "",
) -> Change:
    """Set the levels of features, all or none; ApiError says why the cluster refuses them."""
    features.update_features(
        brokers, levels, upgrade_type=upgrade_type, validate_only=validate_only
    )
    action = "cluster.validate-features" if validate_only else "cluster.update-features"
    after = {name: str(level) for name, level in levels.items()}
    return Change(cluster, action, "features", after=after)


def add_voter(
    brokers: Brokers,
    node_id: int,
    directory_id: bytes,
    endpoints: Sequence[quorum.RaftEndpoint],
    *,
    cluster: str = "",
) -> Change:
    """Add a controller to the voters of the metadata quorum."""
    quorum.add_raft_voter(brokers, node_id, directory_id, endpoints)
    after = {
        "directory_id": uuid_text(directory_id),
        "endpoints": ", ".join(map(str, endpoints)),
    }
    return Change(cluster, "controller.add-voter", str(node_id), after=after)


def remove_voter(
    brokers: Brokers, node_id: int, directory_id: bytes, *, cluster: str = ""
) -> Change:
    """Remove a controller from the voters of the metadata quorum."""
    quorum.remove_raft_voter(brokers, node_id, directory_id)
    before = {"directory_id": uuid_text(directory_id)}
    return Change(cluster, "controller.remove-voter", str(node_id), before=before)


def unregister(brokers: Brokers, node_id: int, *, cluster: str = "") -> Change:
    """Remove the registration of a broker that is gone; Unsupported unless the cluster is KRaft."""
    unregister_broker(brokers, node_id)
    return Change(cluster, "broker.unregister", str(node_id))
