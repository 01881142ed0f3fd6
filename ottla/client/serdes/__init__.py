"""Serdes: serialization and deserialization of keys and values, compatible with Kafka's own.

`string`, `bytes`, numbers, `boolean`, `uuid`, `void` and lists of them are byte for byte Kafka's.
`json` serializes plain values and classes; `avro` and `protobuf` write plain data, or a schema
registry's wire format. A serde never receives None: a missing key or value (a tombstone) is None on
both sides. `ottla.streams.serdes` adds the serdes of windowed keys.
"""

from ottla.client.serdes.named import Serdes
from ottla.client.serdes.registry import Schema, SchemaReference, SchemaRegistry
from ottla.client.serdes.serde import Serde

__all__ = ["Schema", "SchemaReference", "SchemaRegistry", "Serde", "Serdes"]
