"""Stream processing: Kafka Streams' API in Python, and topics as columns for Apache Spark.

A `StreamsBuilder` builds a topology of streams and tables (`dsl/`), a `Topology` one of processors.
A `TopologyTestDriver` runs either inside a test, in milliseconds and without a broker. Names are
Kafka Streams' in snake_case; results are the same as Kafka Streams', record by record.

`KafkaStreams` runs the same topology on Spark (`kafka_streams.py`). `spark/` also reads and writes
topics from PySpark as columns; it is the only package that imports pyspark and needs the extra
`ottla[spark]`.

Not done: optimization of topologies; TTL of stores other than key-value stores; Column expressions
that run in Spark's JVM in stateful parts of a topology (they are evaluated in Python there).
"""

import importlib
from typing import TYPE_CHECKING, Any

from ottla.streams.driver.mock_context import MockProcessorContext
from ottla.streams.driver.test_driver import (
    TestInputTopic,
    TestOutputTopic,
    TestRecord,
    TopologyTestDriver,
)
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.emitting import BufferConfig, EmitStrategy, Suppressed
from ottla.streams.dsl.grouped import (
    CogroupedKStream,
    KGroupedStream,
    SessionWindowedCogroupedKStream,
    SessionWindowedKStream,
    TimeWindowedCogroupedKStream,
    TimeWindowedKStream,
)
from ottla.streams.dsl.kstream import KStream
from ottla.streams.dsl.ktable import GlobalKTable, KGroupedTable, KTable
from ottla.streams.dsl.stream_operators import BranchedKStream
from ottla.streams.expressions.columns import Column, coalesce, col, lit, struct, when
from ottla.streams.model.errors import (
    DeserializationError,
    SerializationError,
    StreamsError,
    TopologyError,
)
from ottla.streams.model.records import (
    KeyValue,
    Record,
    RecordMetadata,
    SessionWindow,
    TimeWindow,
    ValueAndTimestamp,
    VersionedRecord,
    Windowed,
)
from ottla.streams.model.windows import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
)
from ottla.streams.options.dsl_options import (
    AutoOffsetReset,
    Branched,
    Consumed,
    Grouped,
    Materialized,
    Named,
    Printed,
    Produced,
    Repartitioned,
)
from ottla.streams.options.joins import Joined, StreamJoined, TableJoined
from ottla.streams.processor.api import (
    Cancellable,
    ContextualFixedKeyProcessor,
    ContextualProcessor,
    FixedKeyProcessor,
    FixedKeyProcessorContext,
    FixedKeyProcessorSupplier,
    FixedKeyRecord,
    Processor,
    ProcessorContext,
    ProcessorSupplier,
    PunctuationType,
    RecordContext,
    StreamPartitioner,
    TimestampedRecord,
    TimestampExtractor,
    TopicNameExtractor,
    ValueTransformerWithKey,
    ValueTransformerWithKeySupplier,
)
from ottla.streams.processor.timestamps import (
    ExtractRecordMetadataTimestamp,
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)
from ottla.streams.queries.requests import (
    FailureReason,
    KeyQuery,
    MultiVersionedKeyQuery,
    PositionBound,
    QueryableStoreTypes,
    QueryResult,
    RangeQuery,
    ResultOrder,
    StateQueryRequest,
    StateQueryResult,
    StoreQueryParameters,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from ottla.streams.serdes import SchemaRegistry, Serde, Serdes, WindowedSerdes
from ottla.streams.settings.config import StreamsConfig
from ottla.streams.settings.handlers import (
    DefaultProductionExceptionHandler,
    ErrorHandlerContext,
    ExceptionHandlers,
    LogAndContinueExceptionHandler,
    LogAndContinueProcessingExceptionHandler,
    LogAndFailExceptionHandler,
    LogAndFailProcessingExceptionHandler,
)
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.stores.iterators import KeyValueIterator
from ottla.streams.stores.key_value import KeyValueStore, TimestampedKeyValueStore
from ottla.streams.stores.named import Stores
from ottla.streams.stores.session import SessionStore
from ottla.streams.stores.versioned import VersionedKeyValueStore
from ottla.streams.stores.window import TimestampedWindowStore, WindowStore
from ottla.streams.topology.describe import TopologyDescription
from ottla.streams.topology.topology import Topology

if TYPE_CHECKING:
    from ottla.streams.kafka_streams import KafkaStreams as KafkaStreams
    from ottla.streams.kafka_streams import State as State
    from ottla.streams.kafka_streams import StreamsMetadata as StreamsMetadata
    from ottla.streams.kafka_streams import UncaughtExceptionResponse as UncaughtExceptionResponse
    from ottla.streams.spark.query.explain import explain as explain

# Imported when they are accessed by name and not by a star import: tests of topologies need no
# Spark.
_ON_SPARK = {
    "KafkaStreams": "ottla.streams.kafka_streams",
    "State": "ottla.streams.kafka_streams",
    "StreamsMetadata": "ottla.streams.kafka_streams",
    "UncaughtExceptionResponse": "ottla.streams.kafka_streams",
    "explain": "ottla.streams.spark.query.explain",
}


def __getattr__(name: str) -> Any:
    """Import the names that need the extra `ottla[spark]`."""
    if name in _ON_SPARK:
        return getattr(importlib.import_module(_ON_SPARK[name]), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")


__all__ = [
    "AutoOffsetReset",
    "Branched",
    "BranchedKStream",
    "BufferConfig",
    "Cancellable",
    "CogroupedKStream",
    "Column",
    "Consumed",
    "ContextualFixedKeyProcessor",
    "ContextualProcessor",
    "DefaultProductionExceptionHandler",
    "DeserializationError",
    "EmitStrategy",
    "ErrorHandlerContext",
    "ExceptionHandlers",
    "ExtractRecordMetadataTimestamp",
    "FailOnInvalidTimestamp",
    "FailureReason",
    "FixedKeyProcessor",
    "FixedKeyProcessorContext",
    "FixedKeyProcessorSupplier",
    "FixedKeyRecord",
    "GlobalKTable",
    "Grouped",
    "JoinWindows",
    "Joined",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KeyQuery",
    "KeyValue",
    "KeyValueIterator",
    "KeyValueStore",
    "LogAndContinueExceptionHandler",
    "LogAndContinueProcessingExceptionHandler",
    "LogAndFailExceptionHandler",
    "LogAndFailProcessingExceptionHandler",
    "LogAndSkipOnInvalidTimestamp",
    "Materialized",
    "MockProcessorContext",
    "MultiVersionedKeyQuery",
    "Named",
    "PositionBound",
    "Printed",
    "Processor",
    "ProcessorContext",
    "ProcessorSupplier",
    "Produced",
    "PunctuationType",
    "QueryResult",
    "QueryableStoreTypes",
    "RangeQuery",
    "Record",
    "RecordContext",
    "RecordMetadata",
    "Repartitioned",
    "ResultOrder",
    "SchemaRegistry",
    "Serde",
    "Serdes",
    "SerializationError",
    "SessionStore",
    "SessionWindow",
    "SessionWindowedCogroupedKStream",
    "SessionWindowedKStream",
    "SessionWindows",
    "SlidingWindows",
    "StateQueryRequest",
    "StateQueryResult",
    "StoreBuilder",
    "StoreQueryParameters",
    "Stores",
    "StreamJoined",
    "StreamPartitioner",
    "StreamsBuilder",
    "StreamsConfig",
    "StreamsError",
    "Suppressed",
    "TableJoined",
    "TestInputTopic",
    "TestOutputTopic",
    "TestRecord",
    "TimeWindow",
    "TimeWindowedCogroupedKStream",
    "TimeWindowedKStream",
    "TimeWindows",
    "TimestampExtractor",
    "TimestampedKeyQuery",
    "TimestampedKeyValueStore",
    "TimestampedRangeQuery",
    "TimestampedRecord",
    "TimestampedWindowStore",
    "TopicNameExtractor",
    "Topology",
    "TopologyDescription",
    "TopologyError",
    "TopologyTestDriver",
    "UnlimitedWindows",
    "UsePartitionTimeOnInvalidTimestamp",
    "ValueAndTimestamp",
    "ValueTransformerWithKey",
    "ValueTransformerWithKeySupplier",
    "VersionedKeyQuery",
    "VersionedKeyValueStore",
    "VersionedRecord",
    "WallclockTimestampExtractor",
    "WindowKeyQuery",
    "WindowRangeQuery",
    "WindowStore",
    "Windowed",
    "WindowedSerdes",
    "coalesce",
    "col",
    "lit",
    "struct",
    "when",
]
