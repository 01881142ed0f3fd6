"""Records of Parquet files; a door of pyarrow.

Not done: fields of nested columns in a schema; nanoseconds of timestamps, which become
microseconds.
"""

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ottla.base.errors import ConfigError
from ottla.tools.files.mapping import LoadMapping, Note, Rows, partition_of, time_of
from ottla.tools.files.rows import (
    FileRow,
    LoadedRecord,
    RefusedRow,
    RowPosition,
    check_columns,
)

_ROWS = 4096
_TIMES = "timestamp in milliseconds"
_RECORD = ("key", "value", "partition", "timestamp", "headers")


class ParquetReader:
    """Reads Parquet files a few thousand rows at a time."""

    head = b""

    def __init__(self, mapping: LoadMapping, note: Note) -> None:
        self._mapping = mapping
        self._columns = mapping.columns()
        self._note = note

    def read(self, path: Path, advance: Callable[[int], None]) -> Rows:
        """Yield each row with its record, or with the reason why it is refused."""
        try:
            # Spark writes timestamps as INT96, which in nanoseconds end in 2262.
            file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
        except pa.ArrowInvalid as error:
            raise ConfigError(f"{path} is not a Parquet file: {error}") from None
        with file:
            size = path.stat().st_size
            names = file.schema_arrow.names
            convert = self._converter(str(path), names)
            chosen = [name for name in _RECORD if name in names] if self._is_records else names
            line, total = 0, max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(_ROWS, columns=chosen):
                advance(size * batch.num_rows // total)
                for index, values in enumerate(_plain(str(path), batch, self._is_records)):
                    line += 1
                    row = FileRow(RowPosition(str(path), line, "row"), (batch, index))
                    try:
                        yield row, convert(values)
                    except RefusedRow as error:
                        yield row, error

    @property
    def _is_records(self) -> bool:
        return self._mapping.is_records

    def _converter(
        self, path: str, names: list[str]
    ) -> Callable[[Mapping[str, Any]], LoadedRecord]:
        if self._is_records:
            check_columns(("value",), names, path)
            return _of_record
        mapping, columns = self._mapping, self._columns
        check_columns((*mapping.named, *columns), names, path)
        left_out = [name for name in names if columns and name not in columns]
        if left_out:
            self._note(f"{path}: --schema leaves out {', '.join(left_out)}.")

        def convert(values: Mapping[str, Any]) -> LoadedRecord:
            typed: dict[str, Any] = {name: json_value(value) for name, value in values.items()}
            if columns:
                typed = {
                    name: None if typed[name] is None else column.of_text(_plain_text(typed[name]))
                    for name, column in columns.items()
                }
            whole = msgspec.json.encode(typed)
            return LoadedRecord(
                _bytes(values[mapping.key]) if mapping.key else None,
                _bytes(values[mapping.value]) if mapping.value else whole,
                time_of(values[mapping.timestamp], mapping.timestamp)
                if mapping.timestamp
                else None,
            )

        return convert


def _plain(path: str, batch: pa.RecordBatch, is_records: bool) -> list[dict[str, Any]]:
    """Return rows as Python values; ConfigError if Python has no such value."""
    for index, column in enumerate(batch.columns):
        if not pa.types.is_timestamp(column.type):
            continue
        name, moments = batch.schema.names[index], column
        if is_records and name == "timestamp":
            # Python's calendar ends in the year 9999.
            name, moments = _TIMES, column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
        elif column.type.unit == "ns":
            moments = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        batch = batch.set_column(index, name, moments)
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"{path}: {error}. Add --engine spark, which may read it.") from error
    return rows


def _of_record(values: Mapping[str, Any]) -> LoadedRecord:
    headers = values.get("headers")
    if headers is not None and any(header["key"] is None for header in headers):
        raise RefusedRow("a header has no name", "headers")
    return LoadedRecord(
        _bytes(values.get("key")),
        _bytes(values.get("value")),
        values[_TIMES] if _TIMES in values else time_of(values.get("timestamp"), "timestamp"),
        partition_of(values.get("partition")),
        None if headers is None else tuple(map(dict, headers)),
    )


def json_value(value: Any) -> Any:
    """Return a value that JSON has: bytes as base64, moments as ISO 8601, decimals as numbers."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, Decimal):
        return msgspec.Raw(f"{value:f}".encode())
    if isinstance(value, float) and value - value != 0:
        raise RefusedRow(f"{value} is not a JSON number")
    if isinstance(value, dict):
        return {str(name): json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(part) for part in value]
    return value


def time_text(moment: datetime) -> str:
    """Return a moment in UTC, as Spark writes it; with microseconds only if it has them."""
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    unit = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    return aware.replace(tzinfo=None).isoformat(timespec=unit) + "Z"


def _plain_text(value: Any) -> str:
    if isinstance(value, msgspec.Raw):
        return bytes(value).decode()
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    converted = json_value(value)
    return converted.encode() if isinstance(converted, str) else msgspec.json.encode(converted)
