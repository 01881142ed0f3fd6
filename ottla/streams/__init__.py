"""Stream processing: Kafka Streams' model in Python, and topics as columns for Apache Spark.

A `StreamsBuilder` builds a topology of streams and tables (`dsl.py`), a `Topology` one of processors; a
`TopologyTestDriver` runs either in the test that calls it, without a broker, in milliseconds. Names are
Kafka Streams' in snake_case, and so are the results, record by record.

`spark/` runs the same topology on Spark, and reads and writes topics from PySpark as columns; it is the only place
that imports pyspark and needs the extra `ottla[spark]`.

Not done: a runtime around the engine (`KafkaStreams`), Column expressions, `explain()` and `to_svg()`,
`idle_timeout`, TTL and caching of stores, interactive queries, exception handlers, optimization of topologies,
checks of co-partitioning, camelCase names.
"""

from ottla.streams.builder import StreamsBuilder
from ottla.streams.dsl import (
    CogroupedKStream,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    SessionWindowedKStream,
    TimeWindowedKStream,
)
from ottla.streams.errors import DeserializationError, StreamsError, TopologyError
from ottla.streams.kstream import BranchedKStream
from ottla.streams.ktable import GlobalKTable
from ottla.streams.options import (
    Branched,
    BufferConfig,
    Consumed,
    EmitStrategy,
    Grouped,
    Joined,
    Materialized,
    Named,
    Produced,
    Repartitioned,
    StreamJoined,
    Suppressed,
    TableJoined,
)
from ottla.streams.processor import FixedKeyProcessor, Processor, ProcessorContext, Punctuation
from ottla.streams.records import Record, SessionWindow, TimeWindow, ValueAndTimestamp, Windowed
from ottla.streams.serdes import Serde, Serdes
from ottla.streams.stores.builders import Stores
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.topology import Topology
from ottla.streams.windows import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)

__all__ = [
    "Branched",
    "BranchedKStream",
    "BufferConfig",
    "CogroupedKStream",
    "Consumed",
    "DeserializationError",
    "EmitStrategy",
    "FixedKeyProcessor",
    "GlobalKTable",
    "Grouped",
    "JoinWindows",
    "Joined",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "Materialized",
    "Named",
    "Processor",
    "ProcessorContext",
    "Produced",
    "Punctuation",
    "Record",
    "Repartitioned",
    "Serde",
    "Serdes",
    "SessionWindow",
    "SessionWindowedKStream",
    "SessionWindows",
    "SlidingWindows",
    "Stores",
    "StreamJoined",
    "StreamsBuilder",
    "StreamsError",
    "Suppressed",
    "TableJoined",
    "TimeWindow",
    "TimeWindowedKStream",
    "TimeWindows",
    "Topology",
    "TopologyError",
    "TopologyTestDriver",
    "UnlimitedWindows",
    "ValueAndTimestamp",
    "Windowed",
]
