"""A topic that librdkafka wrote as a table."""

import time
from datetime import UTC, datetime

import confluent_kafka
import pytest

from ottla.client.arrow_table import read_table
from ottla.testing.cluster import Cluster
from ottla.wire.records.compression import CODECS

# Brokers reject records of the future, and delete old ones.
NOW_MS = (int(time.time()) - 60) * 1000


@pytest.mark.parametrize("codec", CODECS)
def test_table_has_the_records_of_librdkafka(ottla_cluster: Cluster, codec: str) -> None:
    """The batches are written by another client, in every codec, through Ottla's broker."""
    settings = {"bootstrap.servers": ottla_cluster.bootstrap, "compression.type": codec}
    producer = confluent_kafka.Producer(settings | {"linger.ms": 50})
    for number in range(3000):
        headers = [("n", b"%d" % number), ("null", None)] if number % 3 else None
        value = b"value %d" % number if number % 5 else None
        producer.produce("real", value, b"key %d" % (number % 7), timestamp=NOW_MS, headers=headers)
    assert producer.flush(20) == 0
    columns = ["value", "key", "headers", "timestamp"]
    table = read_table("real", bootstrap=ottla_cluster.bootstrap, columns=columns)
    assert table.num_rows == 3000
    assert table.slice(2999).to_pylist() == [
        {
            "value": b"value 2999",
            "key": b"key 3",
            "headers": [{"key": "n", "value": b"2999"}, {"key": "null", "value": None}],
            "timestamp": datetime.fromtimestamp(NOW_MS / 1000, UTC),
        }
    ]
    assert table.column("value").null_count == 600
    assert table.column("headers").null_count == 1000
