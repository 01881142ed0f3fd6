"""Records and columns for the tests of this folder: numbered values, one per second."""

import time

import numpy as np
import pyarrow as pa
from pyspark.sql import types

from ottla.client.brokers import Brokers
from ottla.client.sender import ColumnSender
from ottla.testing.cluster import Cluster
from ottla.wire.records.columnar_encoding import Rows

# A whole second an hour ago: brokers reject records of the future and delete old ones.
EPOCH = (int(time.time()) - 3600) * 1000


def write(cluster: Cluster, topic: str, partition: int, count: int, first: int = 0) -> None:
    """Append `count` records whose values and seconds after EPOCH begin with `first`."""
    numbers = range(first, first + count)
    values = pa.array([b"%d" % number for number in numbers], pa.binary())
    keys = pa.array([b"k%d" % (number % 3) for number in numbers], pa.binary())
    times = EPOCH + 1000 * np.arange(first, first + count)
    with Brokers(cluster.bootstrap) as brokers, ColumnSender(brokers) as sender:
        sender.send(topic, partition, Rows(values, keys, None, times))
        sender.flush()


_TYPES: dict[str, types.DataType] = {
    "binary": types.BinaryType(),
    "string": types.StringType(),
    "int": types.IntegerType(),
    "bigint": types.LongType(),
    "double": types.DoubleType(),
    "timestamp": types.TimestampType(),
    "headers": types.ArrayType(
        types.StructType(
            [
                types.StructField("key", types.StringType()),
                types.StructField("value", types.BinaryType()),
            ]
        )
    ),
}


def struct(columns: str) -> types.StructType:
    """Return Spark's type of "name type, name type", which Spark itself parses in the JVM."""
    pairs = [column.split() for column in columns.split(",")]
    return types.StructType([types.StructField(name, _TYPES[kind]) for name, kind in pairs])
