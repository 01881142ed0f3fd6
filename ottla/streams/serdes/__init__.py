"""Serdes: how keys and values become bytes and come back, as Kafka's own serializers write them.

`string`, `bytes`, numbers, `boolean`, `uuid`, `void` and lists of them are byte for byte Kafka's. `json` takes plain values and classes;
`avro` and `protobuf` write plain, or in a schema registry's wire format. A serde never sees None: a missing key or
value, and so a tombstone, is None on both sides.
"""

from ottla.streams.serdes.named import Serdes, WindowedSerdes
from ottla.streams.serdes.registry import Schema, SchemaReference, SchemaRegistry
from ottla.streams.serdes.serde import Serde, changes, check_serdes, over_default, resolve

__all__ = [
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
