"""The codec's interface: declare messages, decode and encode them.

Declarations come from `ottla.wire.fields` (see there) and are compiled per class, version and
direction on first use, which takes about a millisecond. Hostile input raises ProtocolError and
nothing else. A message is decoded by

    message, end = schema.decode(FetchRequest, 12, frame, position)

and bytes after `end` are left to the caller. A hot path caches `decoder(cls, version)`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

from ottla.base.buffers import Buffer
from ottla.base.errors import ApiError, ErrorCode, ProtocolError
from ottla.wire.decoding import compile_decoder, decoder_source, has_records
from ottla.wire.encoding import WrongValue, compile_encoder, encoder_source
from ottla.wire.fields import (
    NEVER,
    NO_UUID,
    Field,
    Message,
    Struct,
    array,
    boolean,
    float64,
    int8,
    int16,
    int32,
    int64,
    nested,
    octets,
    records,
    string,
    uint16,
    uint32,
    uuid,
)

__all__ = [
    "NEVER",
    "NO_UUID",
    "FieldRow",
    "Message",
    "Struct",
    "WrongValue",
    "array",
    "boolean",
    "decode",
    "decoder",
    "describe",
    "encode",
    "encode_parts",
    "encoder",
    "first_version",
    "first_version_with_null",
    "float64",
    "has_records",
    "int8",
    "int16",
    "int32",
    "int64",
    "nested",
    "octets",
    "records",
    "source",
    "string",
    "uint16",
    "uint32",
    "uuid",
]

M = TypeVar("M", bound=Message)


def decoder(cls: type[M], version: int) -> Callable[..., tuple[M, int]]:
    """Return the compiled `decode(buffer, position=0, budget=200000) -> (message, end)`.

    Raises ProtocolError if the message has no such version.
    """
    try:
        return cls.DECODERS[version]
    except KeyError:
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            raise ProtocolError(f"{cls.__name__} has no version {version}") from None
    decode = cls.DECODERS[version] = compile_decoder(cls, version)
    return decode


def encoder(cls: type[Message], version: int) -> Callable[..., Any]:
    """Return the compiled `encode(message, header=b"")`.

    It returns bytes, or a list of buffers if `has_records(cls)`. Raises ApiError
    UNSUPPORTED_VERSION if the message has no such version.
    """
    try:
        return cls.ENCODERS[version]
    except KeyError:
        if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION, f"{cls.__name__} has no version {version}."
            ) from None
    encode = cls.ENCODERS[version] = compile_encoder(cls, version)
    return encode


def decode(cls: type[M], version: int, buffer: Buffer, position: int = 0) -> tuple[M, int]:
    """Read one message; return it and the position after it. Raises ProtocolError."""
    return decoder(cls, version)(buffer, position)


def encode_parts(message: Message, version: int, header: bytes = b"") -> list[Buffer]:
    """Encode one message as buffers; record bytes are not copied and have buffers of their own."""
    encoded = encoder(type(message), version)(message, header)
    return encoded if isinstance(encoded, list) else [encoded]


def encode(message: Message, version: int) -> bytes:
    """Encode one message. ApiError UNSUPPORTED_VERSION for values that the version cannot
    represent.
    """
    encoded = encoder(type(message), version)(message)
    return b"".join(encoded) if isinstance(encoded, list) else cast(bytes, encoded)


def source(cls: type[Message], version: int, direction: str = "decode") -> str:
    """Return the Python that is compiled for one version; `direction` is "decode" or "encode"."""
    assert direction in ("decode", "encode")
    write = decoder_source if direction == "decode" else encoder_source
    return write(cls, version)[0]


def first_version(cls: type[Struct], name: str) -> int:
    """Return the first version that has a field, for code that depends on it."""
    return _field(cls, name).since


def first_version_with_null(cls: type[Struct], name: str) -> int:
    """Return the first version in which a field may be null."""
    return _field(cls, name).nullable_since


def _field(cls: type[Struct], name: str) -> Field:
    return next(field for field in cls.FIELDS if field.name == name)


class FieldRow(NamedTuple):
    """One field as the documentation shows it; `path` is dotted from the message."""

    path: str
    type: str
    since: int
    until: int
    nullable_since: int
    tag: int | None
    default: object
    ignorable: bool


def describe(cls: type[Struct], prefix: str = "") -> list[FieldRow]:
    """List the fields of a message or struct, nested ones after their parent."""
    rows = []
    for field in cls.FIELDS:
        rows.append(
            FieldRow(
                prefix + field.name,
                field.type.name,
                field.since,
                field.until,
                field.nullable_since,
                field.tag,
                [] if field.is_fresh and field.type.name.startswith("[]") else field.default,
                field.ignorable,
            )
        )
        item = getattr(field.type, "item", field.type)
        if hasattr(item, "struct"):
            rows += describe(item.struct, f"{prefix}{field.name}.")
    return rows
