"""Keys and values as text: JSON, text, integers, bytes; chosen automatically or by the user."""

from dataclasses import dataclass
from enum import StrEnum

from ottla.console.model.connections import planned


class Format(StrEnum):
    """How bytes are shown; AUTO chooses JSON, TEXT, an integer (8 or 4 bytes) or HEX, in this order."""

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
    """A key, value or header; `format` is never AUTO, and `text` is cut after `text_limit` characters.

    JSON is compact as it was written; the pages indent it. `size_bytes` is the stored size.
    """

    format: Format
    text: str
    size_bytes: int
    is_truncated: bool = False


def decode(raw: bytes, chosen: Format = Format.AUTO, *, text_limit: int = 10_000) -> Decoded:
    """Return bytes as text; a format that does not fit falls back to HEX. Pure."""
    raise planned()
