"""Protobuf messages as JSON texts, by descriptors of the registry. Another door to protobuf.

Not done: registries that return the text of a schema only (`format=serialized` is Confluent's and
Karapace's name of the serialized form).
"""

import base64
import binascii
from typing import Any

from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    json_format,
    message_factory,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import DecodeError

from ottla.client.errors import SerializationError
from ottla.client.schemas.catalogue import ResolvedSchema
from ottla.client.serdes.framing import read_indexes, write_indexes
from ottla.client.serdes.registry import Schema

# The files that are part of Protobuf, which registries do not have; those that others import first.
_BUILT_IN = {
    module.DESCRIPTOR.name: module.DESCRIPTOR
    for module in (
        descriptor_pb2, any_pb2, source_context_pb2, type_pb2, api_pb2, duration_pb2, empty_pb2,
        field_mask_pb2, struct_pb2, timestamp_pb2, wrappers_pb2,
    )
}  # fmt: skip
_MAIN = "main.proto"


class ProtobufValues:
    """A schema with its references, which reads and writes messages; SerializationError if it is
    invalid.
    """

    def __init__(self, resolved: ResolvedSchema) -> None:
        pool = descriptor_pool.DescriptorPool()
        for descriptor in _BUILT_IN.values():
            built_in = descriptor_pb2.FileDescriptorProto()
            descriptor.CopyToProto(built_in)
            pool.Add(built_in)
        try:
            for name, schema in resolved.references:
                _add(pool, name, _file_of(schema))
            file = _file_of(resolved.schema)
            self._file: FileDescriptor = pool.FindFileByName(_add(pool, file.name or _MAIN, file))
        except (TypeError, KeyError, ValueError, DecodeError, binascii.Error) as error:
            raise SerializationError(f"the Protobuf schema cannot be read: {error}") from error

    def to_json(self, data: bytes) -> str:
        """Return data, which begins with the indexes of its message, as JSON."""
        indexes, position = read_indexes(data, 0)
        kind = message_factory.GetMessageClass(self._message(indexes))
        try:
            message = kind.FromString(data[position:])
            return json_format.MessageToJson(
                message, preserving_proto_field_name=True, indent=None, ensure_ascii=False
            )
        except (DecodeError, json_format.Error, TypeError, ValueError, RecursionError) as error:
            raise SerializationError(f"the bytes do not match the schema: {error}") from error

    def from_json(self, text: str) -> bytes:
        """Return the data of a JSON text: a message of the first type of the schema."""
        message: Any = message_factory.GetMessageClass(self._message([0]))()
        try:
            json_format.Parse(text, message)
        except (json_format.Error, TypeError, ValueError, RecursionError) as error:
            raise SerializationError(f"the value does not match the schema: {error}") from error
        return write_indexes([0]) + bytes(message.SerializeToString())

    def _message(self, indexes: list[int]) -> Descriptor:
        siblings: list[Descriptor] = list(self._file.message_types_by_name.values())
        found: Descriptor | None = None
        for index in indexes:
            if not 0 <= index < len(siblings):
                raise SerializationError(f"the schema has no message {indexes}")
            found = siblings[index]
            siblings = list(found.nested_types)
        assert found is not None, "there is at least one index"
        return found


def _file_of(schema: Schema) -> descriptor_pb2.FileDescriptorProto:
    return descriptor_pb2.FileDescriptorProto.FromString(
        base64.b64decode(schema.text, validate=True)
    )


def _add(
    pool: descriptor_pool.DescriptorPool, name: str, file: descriptor_pb2.FileDescriptorProto
) -> str:
    """Add a file under the name by which others import it."""
    file.name = name
    pool.Add(file)
    return name
