"""Stream processing: Kafka Streams' API in Python, and topics as columns for Apache Spark.

A `StreamsBuilder` builds a topology of streams and tables (`dsl/`), a `Topology` one of processors.
A `TopologyTestDriver` runs either inside a test, in milliseconds and without a broker. Names are
Kafka Streams' in snake_case; results are the same as Kafka Streams', record by record.

`KafkaStreams` runs the same topology on Spark, or in this process (`kafka_streams.py`). `spark/`
also reads and writes topics from PySpark as columns; it is the only package that imports pyspark
and needs the extra `ottla[spark]`.

Not done: optimization of topologies; TTL of stores other than key-value stores; Column expressions
that run in Spark's JVM in stateful parts of a topology (they are evaluated in Python there).
"""

from typing import TYPE_CHECKING, Any

from ottla.base.loading import load, load_module

if TYPE_CHECKING:
    from ottla.streams.application.metadata import StreamsMetadata as StreamsMetadata
    from ottla.streams.application.state_listeners import (
        StandbyUpdateListener as StandbyUpdateListener,
    )
    from ottla.streams.application.state_listeners import (
        StateRestoreListener as StateRestoreListener,
    )
    from ottla.streams.application.state_listeners import SuspendReason as SuspendReason
    from ottla.streams.kafka_streams import KafkaStreams as KafkaStreams
    from ottla.streams.kafka_streams import State as State
    from ottla.streams.kafka_streams import UncaughtExceptionResponse as UncaughtExceptionResponse
    from ottla.streams.names import *  # noqa: F403 - the names of __all__
    from ottla.streams.names import __all__ as __all__
    from ottla.streams.spark.query.explain import explain as explain

_NAMES = "ottla.streams.names"
# Imported when they are accessed by name and not by a star import: tests of topologies need no
# Spark.
_ON_SPARK = {
    "KafkaStreams": "ottla.streams.kafka_streams",
    "State": "ottla.streams.kafka_streams",
    **dict.fromkeys(
        ("KeyQueryMetadata", "LagInfo", "StreamsMetadata", "TaskMetadata", "ThreadMetadata"),
        "ottla.streams.application.metadata",
    ),
    **dict.fromkeys(
        ("StandbyUpdateListener", "StateRestoreListener", "SuspendReason"),
        "ottla.streams.application.state_listeners",
    ),
    "UncaughtExceptionResponse": "ottla.streams.kafka_streams",
    "explain": "ottla.streams.spark.query.explain",
}


def __getattr__(name: str) -> Any:
    """Import the public names when one of them is first used (PEP 562).

    Workers of Spark and the commands of `ottla` import only the modules below this package that
    they need.
    """
    if name in _ON_SPARK:
        return load(_ON_SPARK[name], name)
    names = load_module(_NAMES)
    if name != "__all__" and name not in names.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals().update({name: getattr(names, name) for name in (*names.__all__, "__all__")})
    return globals()[name]


def __dir__() -> list[str]:
    """Return the public names and the module's own."""
    return sorted({*globals(), *load_module(_NAMES).__all__, *_ON_SPARK})
