"""Values for every message in every version: random ones, and hypothesis strategies.

Both set only fields of the version, so that decoded messages equal the encoded ones.
"""

import base64
import random
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from ottla.base.errors import ErrorCode
from ottla.wire import fields
from ottla.wire.api_keys import APIS
from ottla.wire.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.wire.schema import Message, Struct

STORED: tuple[type[Message], ...] = (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
MESSAGES: tuple[type[Message], ...] = tuple(
    cls for api in APIS.values() for cls in (api.request, api.response)
)
BITS = {"b": 8, "h": 16, "i": 32, "q": 64}
ERROR_CODES = sorted(code.value for code in ErrorCode if code.value != -1)


def versions(cls: type[Message]) -> range:
    """Return all versions of a message."""
    return range(cls.MIN_VERSION, cls.MAX_VERSION + 1)


def each_version(classes: tuple[type[Message], ...]) -> Iterator[tuple[type[Message], int]]:
    """Return every (message, version)."""
    return ((cls, version) for cls in classes for version in versions(cls))


def version_id(value: object) -> str:
    """Return the name of a test parameter."""
    return value.__name__ if isinstance(value, type) else f"v{value}"


class Sampler:
    """Generates random messages from one seed.

    Tagged structs never equal their default, which no encoder writes. A `portable` sampler uses
    only values that other codecs support: known error codes, times that fit kio's timedelta and
    datetime, always an id in tagged ids (kafka-python writes zeros where Kafka writes nothing).
    """

    def __init__(
        self, seed: int, *, portable: bool = False, items: tuple[int, int] = (0, 2)
    ) -> None:
        self.random = random.Random(seed)
        self.portable = portable
        self.items = items

    def message(self, cls: type[Message], version: int) -> Message:
        """Return a message with random values in all fields of the version."""
        message = self.struct(cls, version)
        assert isinstance(message, Message)
        return message

    def struct(self, cls: type[Struct], version: int) -> Struct:
        """Return a struct with random values."""
        values = {}
        for field in cls.FIELDS:
            if not field.is_in(version):
                continue
            keeps = self.portable and field.type is fields.UUID
            if field.tag is not None and not keeps and self.random.random() < 0.4:
                continue
            if field.is_nullable_in(version) and self.random.random() < 0.3:
                values[field.name] = None
            else:
                values[field.name] = self.value(field.name, field.type, version)
            if field.tag is not None and isinstance(field.type, fields.Nested):
                values[field.name] = self.unlike_default(field.type.struct, version)
        return cls(**values)

    def unlike_default(self, cls: type[Struct], version: int) -> Struct:
        """Return a struct that differs from one with defaults."""
        while True:
            value = self.struct(cls, version)
            if value != cls():
                return value

    def value(self, name: str, type: fields.Type, version: int) -> Any:
        """Return a random value of a type."""
        if isinstance(type, fields.Array):
            count = self.random.randint(*self.items)
            return [self.value(name, type.item, version) for _ in range(count)]
        if isinstance(type, fields.Nested):
            return self.struct(type.struct, version)
        if type is fields.STRING:
            return "".join(self.random.choices("abcdefgh-._üß漢", k=self.random.randint(0, 9)))
        if type in (fields.OCTETS, fields.RECORDS):
            return self.random.randbytes(self.random.randint(0, 9))
        if type is fields.UUID:
            return self.random.randbytes(16)
        if type is fields.BOOL:
            return self.random.random() < 0.5
        if type is fields.FLOAT64:
            return self.random.uniform(-1e9, 1e9)
        assert isinstance(type, fields.Fixed)
        return self.integer(name, type)

    def integer(self, name: str, type: fields.Fixed) -> int:
        """Return a random integer, often a small or an extreme one."""
        if self.portable and "error_code" in name:
            return self.random.choice(ERROR_CODES)
        if self.portable and ("_ms" in name or "timestamp" in name):
            return self.random.randrange(min(2 ** (BITS[type.code] - 1), 2**41))
        if type.code.isupper():
            return self.random.randrange(2 ** BITS[type.code.lower()])
        top = 2 ** (BITS[type.code] - 1)
        return self.random.choice(
            (-1, 0, 1, -top, top - 1, self.random.randrange(-top, top), self.random.randrange(100))
        )


def struct_strategy(cls: type[Struct], version: int) -> st.SearchStrategy[Any]:
    """Return a hypothesis strategy for messages."""
    values = {}
    for field in cls.FIELDS:
        if not field.is_in(version):
            continue
        strategy = _value_strategy(field.type, version)
        if field.is_nullable_in(version):
            strategy = st.none() | strategy
        if field.tag is not None:
            default = [] if field.is_fresh else field.default
            if isinstance(field.type, fields.Nested):
                # No encoder writes a tagged struct that equals its default.
                strategy = strategy.filter(field.type.struct().__ne__)
            strategy = st.just(default) | strategy
        values[field.name] = strategy
    return st.builds(cls, **values)


def _value_strategy(type: fields.Type, version: int) -> st.SearchStrategy[Any]:
    if isinstance(type, fields.Array):
        return st.lists(_value_strategy(type.item, version), max_size=3)
    if isinstance(type, fields.Nested):
        return struct_strategy(type.struct, version)
    if type is fields.STRING:
        return st.text(max_size=20)
    if type in (fields.OCTETS, fields.RECORDS):
        return st.binary(max_size=20)
    if type is fields.UUID:
        return st.binary(min_size=16, max_size=16)
    if type is fields.BOOL:
        return st.booleans()
    if type is fields.FLOAT64:
        return st.floats(allow_nan=False)
    assert isinstance(type, fields.Fixed)
    if type.code.isupper():
        return st.integers(0, 2 ** BITS[type.code.lower()] - 1)
    top = 2 ** (BITS[type.code] - 1)
    return st.integers(-top, top - 1)


def to_json(value: Any) -> Any:
    """Convert a message to values that JSON supports; bytes become base64."""
    if isinstance(value, Struct):
        return {
            field.name: to_json(getattr(value, field.name))
            for field in value.FIELDS
            if getattr(value, field.name) != ([] if field.is_fresh else field.default)
        }
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    return value


def from_json(cls: type[Struct], document: dict[str, Any]) -> Struct:
    """Convert the result of `to_json` back."""
    by_name = {field.name: field for field in cls.FIELDS}
    return cls(**{key: _from_json(by_name[key].type, value) for key, value in document.items()})


def _from_json(type: fields.Type, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(type, fields.Array):
        return [_from_json(type.item, item) for item in value]
    if isinstance(type, fields.Nested):
        return from_json(type.struct, value)
    if type in (fields.OCTETS, fields.RECORDS, fields.UUID):
        return base64.b64decode(value)
    return value
