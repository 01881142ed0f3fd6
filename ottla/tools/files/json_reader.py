"""Records of JSON lines: a line is the value as it is, with its own digits, names and blanks."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ottla.tools.files.columns import SchemaColumn
from ottla.tools.files.mapping import (
    LoadMapping,
    Note,
    Rows,
    bytes_of_base64,
    partition_of,
    time_of,
)
from ottla.tools.files.rows import FileRow, LoadedRecord, RefusedRow, RowPosition
from ottla.tools.files.sources import open_file

_BOM = b"\xef\xbb\xbf"
_NULL = b"null"


class _Header(msgspec.Struct):
    key: str
    value: bytes | None = None


class _ExportedRecord(msgspec.Struct):
    """A line that `topic export` wrote; headers are base64, as Spark writes bytes."""

    key: str | None = None
    value: str | msgspec.UnsetType | None = msgspec.UNSET
    key_base64: str | None = None
    value_base64: str | msgspec.UnsetType | None = msgspec.UNSET
    partition: int | None = None
    timestamp: str | float | None = None
    headers: list[_Header] | None = None


class JsonReader:
    """Reads files with one JSON object per line; blank lines are skipped."""

    head = b""

    def __init__(self, mapping: LoadMapping, note: Note) -> None:
        self._columns = mapping.columns()
        self._note = note
        self._left_out: set[str] = set()
        self._convert = _of_record if mapping.is_records else self._of_object(mapping)

    def read(self, path: Path, advance: Callable[[int], None]) -> Rows:
        """Yield each row with its record, or with the reason why it is refused."""
        with open_file(path) as file:
            for number, raw in enumerate(file, 1):
                advance(len(raw))
                line = (raw.removeprefix(_BOM) if number == 1 else raw).strip()
                if not line:
                    continue
                row = FileRow(RowPosition(str(path), number), raw)
                try:
                    yield row, self._convert(line)
                except RefusedRow as error:
                    yield row, error

    def _of_object(self, mapping: LoadMapping) -> Callable[[bytes], LoadedRecord]:
        columns = self._columns
        names = [*mapping.named, *columns]
        decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])

        def convert(line: bytes) -> LoadedRecord:
            fields = _decoded(decoder, line)
            missing = [name for name in names if name not in fields]
            if missing:
                raise RefusedRow("the object has no such field", missing[0])
            return LoadedRecord(
                _text(fields, mapping.key) if mapping.key else None,
                self._value(fields, mapping.value, line),
                time_of(_plain(fields[mapping.timestamp]), mapping.timestamp)
                if mapping.timestamp
                else None,
            )

        return convert

    def _value(self, fields: Mapping[str, Any], name: str, line: bytes) -> bytes | None:
        if self._columns:
            typed = typed_fields(self._columns, fields)
            new = fields.keys() - self._columns.keys() - self._left_out
            if new:
                self._left_out |= new
                self._note(f"--schema leaves out {', '.join(sorted(new))}.")
        else:
            typed = {}
        if name:
            return _text(fields, name)
        return msgspec.json.encode(typed) if self._columns else line


def typed_fields(columns: Mapping[str, SchemaColumn], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a schema as checked JSON; RefusedRow if one does not fit."""
    return {
        name: None if bytes(fields[name]) == _NULL else column.of_json(fields[name])
        for name, column in columns.items()
    }


def decode_object(data: bytes) -> dict[str, Any]:
    """Return the fields of a JSON object with their own text; RefusedRow for other data."""
    fields: dict[str, Any] = _decoded(_OBJECT, data)
    return fields


_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RECORD = msgspec.json.Decoder(_ExportedRecord)


def _decoded(decoder: Any, line: bytes) -> Any:
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RefusedRow(f"not a JSON object that fits: {error}") from None
    except RecursionError:
        raise RefusedRow("the JSON is nested too deep to be checked") from None


def _plain(raw: Any) -> Any:
    return _decoded(msgspec.json, bytes(raw))


def _text(fields: Mapping[str, Any], name: str) -> bytes | None:
    """Return the text of a field: a string without its quotes, any other value as it is written."""
    data = bytes(fields[name])
    if data == _NULL:
        return None
    return str(_plain(data)).encode() if data[:1] == b'"' else data


def _of_record(line: bytes) -> LoadedRecord:
    record = _decoded(_RECORD, line)
    headers = record.headers
    if record.value is msgspec.UNSET and record.value_base64 is msgspec.UNSET:
        raise RefusedRow("the object has neither value nor value_base64: it is no record")
    return LoadedRecord(
        _bytes(record.key, record.key_base64, "key_base64"),
        _bytes(record.value, record.value_base64, "value_base64"),
        time_of(record.timestamp, "timestamp"),
        partition_of(record.partition),
        None if headers is None else tuple({"key": h.key, "value": h.value} for h in headers),
    )


def _bytes(text: Any, coded: Any, column: str) -> bytes | None:
    if isinstance(text, str):
        return text.encode()
    return bytes_of_base64(coded, column) if isinstance(coded, str) else None
