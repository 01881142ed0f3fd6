"""Which columns of a row become key, value and timestamp of a record, and their conversion."""

import base64
import binascii
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ottla.tools.files.columns import SchemaColumn, parse_schema
from ottla.tools.files.rows import FileRow, LoadedRecord, RefusedRow, milliseconds, milliseconds_of

Note = Callable[[str], None]
Rows = Iterator[tuple[FileRow, "LoadedRecord | RefusedRow"]]


@dataclass(frozen=True, kw_only=True)
class LoadMapping:
    """Which columns become key, value and timestamp; `is_records`: files of `topic export`."""

    key: str = ""
    value: str = ""
    timestamp: str = ""
    is_records: bool = False
    schema: str = ""

    @property
    def named(self) -> tuple[str, ...]:
        """The columns of the command line."""
        return tuple(name for name in (self.key, self.value, self.timestamp) if name)

    def columns(self) -> dict[str, SchemaColumn]:
        """Return the columns of the schema; none without a schema."""
        return parse_schema(self.schema) if self.schema else {}


def time_of(value: Any, column: str) -> int | None:
    """Return milliseconds of a text, a moment, or seconds since 1970; RefusedRow otherwise."""
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return milliseconds_of(value)
        if isinstance(value, datetime):
            return milliseconds(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return round(value * 1000)
    except (ValueError, OverflowError) as error:
        raise RefusedRow(str(error), column) from None
    raise RefusedRow(f"{value!r} is not a time", column)


def partition_of(value: Any) -> int | None:
    """Return the number of a partition, or None."""
    if value is None or value == "":
        return None
    try:
        return int(value)
    except ValueError:
        raise RefusedRow(f"{value!r} is not the number of a partition", "partition") from None


def bytes_of_base64(text: str | None, column: str) -> bytes | None:
    """Return the bytes of base64."""
    if text is None:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise RefusedRow(f"not base64: {error}", column) from None
