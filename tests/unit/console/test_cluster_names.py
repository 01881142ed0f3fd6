"""The clusters of the console by name."""

import pytest

from ottla.base.errors import ConfigError
from ottla.console.catalogue import ClusterCatalogue, UnknownCluster
from ottla.operations.survey.connections import ClusterConnection, ClusterSettings


def _connection() -> ClusterConnection:
    return ClusterConnection(ClusterSettings("east", "127.0.0.1:1"))


def test_the_catalogue_knows_clusters_by_name() -> None:
    """A name is unique; an unknown one is reported with the known names."""
    catalogue = ClusterCatalogue()
    catalogue.add(_connection())
    with pytest.raises(ConfigError, match="already"):
        catalogue.add(_connection())
    with pytest.raises(UnknownCluster, match="Known clusters: east"):
        catalogue.get("west")
    assert catalogue.names() == ["east"]
    catalogue.remove("east")
    assert catalogue.names() == []
