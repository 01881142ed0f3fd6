"""Foreign codecs as references: kio and kafka-python build and encode the same message.

kio aborts the process on hostile input, so it gets only the output of correct encoders.
"""

import dataclasses
import datetime
import functools
import importlib
import inspect
import io
import pkgutil
import re
import uuid
from typing import Any

import kafka.protocol
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.schemas.fields.codecs import BitField
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from ottla.wire import fields
from ottla.wire.api_keys import api_of
from ottla.wire.schema import Message, Struct

# Apache Kafka 3.9 is the last release that has these: only its own classes know them.
WITH_ZOOKEEPER = ("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown")
NOT_IN_KAFKA_PYTHON = (
    "ConsumerGroup",
    "GetTelemetry",
    "PushTelemetry",
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "AllocateProducerIds",
    "UnregisterBroker",
    *(f"{verb}DelegationToken" for verb in ("Create", "Renew", "Expire", "Describe")),
    "AddRaftVoter",
    "RemoveRaftVoter",
    "ShareGroup",
    *(f"{verb}ShareGroup" for verb in ("Describe", "Alter", "Delete")),
    "StreamsGroup",
    *WITH_ZOOKEEPER,
)
# kafka-python fills `topic_names` of the first message itself; it reads an error of the second one
# as version 0.
NOT_RECODED_BY_KAFKA_PYTHON = ("DeleteTopicsRequest", "ApiVersionsResponse")

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def kio_class(cls: type[Message], version: int) -> type | None:
    """Return kio's class of a message, None if it has no such class."""
    if cls.API_KEY < 0:
        stem = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        kind = "data"
    else:
        stem = api_of(cls).stem
        kind = "request" if cls.__name__.endswith("Request") else "response"
    try:
        module = importlib.import_module(f"kio.schema.{stem}.v{version}.{kind}")
    except ModuleNotFoundError:
        return None
    return getattr(module, cls.__name__)


def encode_with_kio(message: Message, version: int) -> bytes:
    """Convert our object to kio's and let kio encode it."""
    foreign = to_kio(message, kio_class(type(message), version), version)
    buffer = io.BytesIO()
    entity_writer(type(foreign))(buffer, foreign)
    return buffer.getvalue()


def decode_with_kio(cls: type[Message], version: int, data: bytes) -> Any:
    """Let kio decode the output of a correct encoder."""
    foreign, end = entity_reader(kio_class(cls, version))(data, 0)
    assert end == len(data)
    return foreign


def to_kio(message: Struct, cls: Any, version: int) -> Any:
    """Convert struct by struct; the fields of both are in the order of Kafka's schema."""
    ours = [field for field in message.FIELDS if field.is_in(version)]
    theirs = dataclasses.fields(cls)
    assert len(ours) == len(theirs), f"{cls} has other fields"
    values = {}
    for field, their in zip(ours, theirs, strict=True):
        assert field.name.removesuffix("_ms") == their.name.removesuffix("_ms")
        value = getattr(message, field.name)
        if value is None and field.tag is not None and not field.is_nullable_in(version):
            continue
        values[their.name] = _kio_value(value, field, their, version)
    return cls(**values)


def _kio_value(value: Any, field: fields.Field, their: Any, version: int) -> Any:
    kind = their.metadata.get("kafka_type")
    if value is None:
        return None
    if isinstance(value, list):
        item_class = None
        if isinstance(field.type, fields.Array) and isinstance(field.type.item, fields.Nested):
            item_class = _entity(their.type)
        return tuple(
            to_kio(item, item_class, version) if item_class else _kio_scalar(item, kind)
            for item in value
        )
    if isinstance(value, Struct):
        return to_kio(value, _entity(their.type), version)
    return _kio_scalar(value, kind)


def _entity(annotation: Any) -> type:
    """Find the struct's class in `X`, `X | None`, `tuple[X, ...]` or `tuple[X, ...] | None`."""
    if dataclasses.is_dataclass(annotation):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        result = _entity(argument)
        if result is not None:
            return result
    return None


def _kio_scalar(value: Any, kind: str) -> Any:
    match kind:
        case "error_code":
            return ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta(milliseconds=value)
        case "datetime_i64":
            return None if value == -1 else _EPOCH + datetime.timedelta(milliseconds=value)
        case "uuid":
            return None if value == bytes(16) else uuid.UUID(bytes=value)
        case _:
            return value


@functools.cache
def _kafka_python_classes() -> dict[str, type[ApiMessage]]:
    entries = {}
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if "old" in module.name or "generate" in module.name:
            continue
        for name, item in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(item) and issubclass(item, ApiMessage):
                entries[name] = item
    return entries


def kafka_python_class(cls: type[Message]) -> type[ApiMessage] | None:
    """Return kafka-python's class of a message, None if it has no such class."""
    return _kafka_python_classes().get(cls.__name__)


def encode_with_kafka_python(message: Message, version: int) -> bytes:
    """Convert our object to kafka-python's and let kafka-python encode it."""
    foreign = to_kafka_python(message, kafka_python_class(type(message)), version)
    return bytes(foreign.encode(version=version))


def recode_with_kafka_python(cls: type[Message], version: int, data: bytes) -> bytes:
    """Let kafka-python decode bytes and encode the result."""
    foreign = kafka_python_class(cls).decode(data, version=version)
    # Without this its encoder fails for an object that was decoded without a header.
    foreign._header = None
    return bytes(foreign.encode(version=version))


def to_kafka_python(message: Struct, cls: Any, version: int) -> Any:
    """Convert struct by struct; nested classes are attributes of their parents."""
    values = {}
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if not field.is_in(version) or (value is None and field.tag is not None):
            continue
        if field.name.endswith("_operations") and "authorized_operations" in cls.fields:
            values["authorized_operations"] = BitField.from_32_bit_field(value & 0xFFFFFFFF)
        else:
            values[field.name] = _kafka_python_value(value, field.type, cls, version)
    return cls(version=version, **values)


def _kafka_python_value(value: Any, type: fields.Type, parent: Any, version: int) -> Any:
    if isinstance(value, list):
        assert isinstance(type, fields.Array)
        return [_kafka_python_value(item, type.item, parent, version) for item in value]
    if isinstance(value, Struct):
        # Ours has an additional name if request and response define the same name differently.
        own = value.__class__.__name__
        names = [name for name in vars(parent) if own.endswith(name)]
        nested = getattr(parent, max(names, key=len))
        return to_kafka_python(value, nested, version)
    if type is fields.UUID:
        return uuid.UUID(bytes=value)
    return value
