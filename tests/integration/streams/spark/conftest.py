"""Topics of a real broker, for planners and tasks that run without Spark."""

import pytest

from ottla.client.arrow_table import read_table
from ottla.testing.cluster import Cluster
from tests.integration.streams.spark.rows import write


@pytest.fixture
def flights(ottla_cluster: Cluster) -> Cluster:
    """A cluster with the topic `flights`: partition 0 holds 20 records, partition 1 holds 10."""
    ottla_cluster.create_topic("flights", partitions=2)
    write(ottla_cluster, "flights", 0, 20)
    write(ottla_cluster, "flights", 1, 10)
    assert read_table("flights", bootstrap=ottla_cluster.bootstrap).num_rows == 30
    return ottla_cluster
