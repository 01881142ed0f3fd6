"""Keys and values as text: JSON, text, integers, bytes; chosen automatically or by the user."""

import base64
import json
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial


class Format(StrEnum):
    """The form of shown bytes; AUTO chooses JSON, TEXT, an integer (8 or 4 bytes) or HEX, in this
    order.
    """

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"
    INT32 = "int32"
    INT64 = "int64"
    DOUBLE = "double"
    HEX = "hex"
    BASE64 = "base64"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A key, value or header; `format` is never AUTO, and `text` is cut after `text_limit`
    characters.

    JSON is as it was written; the pages indent it. `size_bytes` is the stored size. `schema_id` is
    in front of a value in the wire format of schema registries; the text of JSON is without it.
    `schema` names the schema of a registry with which it was read, or why it was not; else empty.
    """

    format: Format
    text: str
    size_bytes: int
    is_truncated: bool = False
    schema_id: int | None = None
    schema: str = ""


def decode(raw: bytes, chosen: Format = Format.AUTO, *, text_limit: int = 10_000) -> Decoded:
    """Return bytes as text; a format that does not fit falls back to HEX. Pure."""
    schema_id: int | None = None
    text: str | None
    if chosen is Format.AUTO:
        schema_id, chosen = _recognize(raw)
    if schema_id is not None and chosen is Format.JSON:
        text = raw[_FRAME_BYTES:].decode()
    else:
        text = _DECODERS[chosen](raw, text_limit)
    if text is None:
        chosen, text = Format.HEX, _hex(raw, text_limit)
    is_cut = len(text) > text_limit
    return Decoded(chosen, text[:text_limit], len(raw), is_cut, schema_id)


def decode_optional(
    raw: bytes | None, chosen: Format = Format.AUTO, *, text_limit: int = 10_000
) -> Decoded | None:
    """Return bytes as text, None for None. Pure."""
    return None if raw is None else decode(raw, chosen, text_limit=text_limit)


def _recognize(raw: bytes) -> tuple[int | None, Format]:
    """Return the id of a schema, if there is one, and the format."""
    if raw[:1] == WIRE_PREFIX and len(raw) > _FRAME_BYTES:
        schema_id = int.from_bytes(raw[1:_FRAME_BYTES], "big")
        text = _text(raw[_FRAME_BYTES:], 0)
        if text is not None and text.lstrip()[:1] in ("{", "[") and _is_json(text):
            return schema_id, Format.JSON
        if schema_id < _SCHEMA_ID_LIMIT and len(raw) not in _BY_SIZE:
            return schema_id, Format.HEX
    text = _text(raw, 0)
    # Integers have bytes that are control characters.
    if text is None or (len(raw) in _BY_SIZE and CONTROLS.search(text)):
        return None, _BY_SIZE.get(len(raw), Format.HEX)
    is_json = text.lstrip()[:1] in ("{", "[") and _is_json(text)
    return None, Format.JSON if is_json else Format.TEXT


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _text(raw: bytes, limit: int) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _json(raw: bytes, limit: int) -> str | None:
    text = _text(raw, limit)
    return text if text is not None and _is_json(text) else None


def _number(packed: struct.Struct, raw: bytes, limit: int) -> str | None:
    return str(packed.unpack(raw)[0]) if len(raw) == packed.size else None


def _hex(raw: bytes, limit: int) -> str:
    # One byte more than is shown, so that the caller notices that the text is cut.
    return raw[: limit // 2 + 1].hex()


def _base64(raw: bytes, limit: int) -> str:
    return base64.b64encode(raw[: limit + 3]).decode()


CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]"
)
"""Characters that pages show by their codes; tab, line feed and carriage return are text."""
WIRE_PREFIX = b"\x00"
"""The first byte of a value with the id of a schema, in four bytes, in front of it."""
_FRAME_BYTES = 5
# Ids of registries are small; other numbers are binary data that begins with a zero byte.
_SCHEMA_ID_LIMIT = 1 << 24
_BY_SIZE = {8: Format.INT64, 4: Format.INT32}
_DECODERS: Mapping[Format, Callable[[bytes, int], str | None]] = {
    Format.JSON: _json,
    Format.TEXT: _text,
    Format.INT32: partial(_number, struct.Struct(">i")),
    Format.INT64: partial(_number, struct.Struct(">q")),
    Format.DOUBLE: partial(_number, struct.Struct(">d")),
    Format.HEX: _hex,
    Format.BASE64: _base64,
}
