"""A schema registry for tests, used in this process or by other clients over HTTP.

with FakeSchemaRegistry() as registry:
    serde = Serdes.avro(schema, registry=registry, subject="users-value")
    other_client = SchemaRegistryClient({"url": registry.url})
"""

from ottla.testing.schema_registry.http_server import FakeSchemaRegistry

__all__ = ["FakeSchemaRegistry"]
