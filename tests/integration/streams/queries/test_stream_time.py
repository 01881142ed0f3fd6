"""The stream time of an application, read from a broker."""

import numpy as np
import pyarrow as pa

from ottla.client.brokers import Brokers
from ottla.client.config.access import ClusterAccess
from ottla.client.sender import ColumnSender
from ottla.streams.queries.stream_time import StreamTime
from ottla.testing.cluster import Cluster
from ottla.wire.records.columnar_encoding import Rows


def test_it_is_the_maximum_over_all_partitions(ottla_cluster: Cluster) -> None:
    """It is not the time of the last record; missing topics and brokers yield an empty text."""
    time = StreamTime(
        ClusterAccess(ottla_cluster.bootstrap), "app", ["app-x-changelog", "app-y-changelog"]
    )
    assert time.read() == ""
    ottla_cluster.create_topic("app-x-changelog", partitions=2, config={"retention.ms": "-1"})
    assert time.read() == ""
    with Brokers(ottla_cluster.bootstrap) as brokers, ColumnSender(brokers) as sender:
        for partition, times in ((0, [1_000_000]), (1, [3_000_000, 2_000_000])):
            values = pa.array([b"v"] * len(times), pa.binary())
            sender.send("app-x-changelog", partition, Rows(values, None, None, np.array(times)))
        sender.flush()
    assert time.read() == "1970-01-01T00:50:00Z"
    time.close()
    nowhere = StreamTime(ClusterAccess("127.0.0.1:1"), "app", ["app-x-changelog"])
    assert nowhere.read() == ""
    nowhere.close()
