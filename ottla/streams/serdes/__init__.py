"""Serdes: serialization and deserialization of keys and values, compatible with Kafka's own.

`string`, `bytes`, numbers, `boolean`, `uuid`, `void` and lists of them are byte for byte Kafka's.
`json` serializes plain values and classes; `avro` and `protobuf` write plain data, or a schema
registry's wire format. A serde never receives None: a missing key or value (a tombstone) is None on
both sides.
"""

from ottla.client.serdes.registry import Schema, SchemaReference, SchemaRegistry
from ottla.streams.serdes.named import DefaultSerdes, Serdes, WindowedSerdes
from ottla.streams.serdes.serde import Serde, changes, check_serdes, over_default, resolve

__all__ = [
    "DefaultSerdes",
    "Schema",
    "SchemaReference",
    "SchemaRegistry",
    "Serde",
    "Serdes",
    "WindowedSerdes",
    "changes",
    "check_serdes",
    "over_default",
    "resolve",
]
