"""Records of CSV files: a cell is the key, another the value, or the row becomes a JSON object."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ottla.base.errors import ConfigError
from ottla.tools.files.columns import SchemaColumn
from ottla.tools.files.csv_rows import CellReader, Dialect, read_rows
from ottla.tools.files.mapping import (
    LoadMapping,
    Note,
    Rows,
    bytes_of_base64,
    partition_of,
    time_of,
)
from ottla.tools.files.rows import FileRow, LoadedRecord, RefusedRow, RowPosition, check_columns
from ottla.tools.files.sources import open_file


class CsvReader:
    """Reads CSV files."""

    def __init__(self, mapping: LoadMapping, dialect: Dialect, note: Note) -> None:
        self._mapping = mapping
        self._dialect = dialect
        self._columns = mapping.columns()
        self._note = note
        self._cells = CellReader(dialect)
        self.head = b""

    def read(self, path: Path, advance: Callable[[int], None]) -> Rows:
        """Yield each row with its record, or with the reason why it is refused."""
        with open_file(path) as file:
            rows = read_rows(file, self._dialect)
            first = next(rows, None)
            if first is None:
                return
            names = self._names(str(path), first[1])
            if self._dialect.has_header:
                self.head = first[1]
            else:
                rows = _prepended(first, rows)
            convert = self._converter(str(path), names)
            for line, raw in rows:
                advance(len(raw))
                row = FileRow(RowPosition(str(path), line), raw)
                try:
                    cells = self._cells.split(raw)
                    if len(cells) != len(names):
                        raise RefusedRow(f"the row has {len(cells)} columns, not {len(names)}")
                    yield row, convert(cells)
                except RefusedRow as error:
                    yield row, _with_name(error, names)

    def _names(self, path: str, head: bytes) -> list[str]:
        try:
            cells = self._cells.split(head)
        except RefusedRow as error:
            raise _wrong_header(path, error.reason) from None
        if not self._dialect.has_header:
            known = list(self._columns)
            return known or [f"_c{number}" for number in range(len(cells))]
        names = [cell or f"_c{number}" for number, cell in enumerate(cells)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise _wrong_header(path, f"column {twice[0]!r} is there twice")
        return names

    def _converter(self, path: str, names: list[str]) -> Callable[[list[str | None]], LoadedRecord]:
        if self._mapping.is_records:
            return _records_of_cells(path, names)
        check_columns((*self._mapping.named, *self._columns), names, path)
        chosen = _chosen(self._columns, names)
        left_out = [name for name in names if self._columns and name not in self._columns]
        if left_out:
            self._note(f"{path}: --schema leaves out {', '.join(left_out)}.")
        key, value, time = (
            names.index(name) if name else -1
            for name in (self._mapping.key, self._mapping.value, self._mapping.timestamp)
        )
        encode, of_time = msgspec.json.encode, self._mapping.timestamp

        def convert(cells: list[str | None]) -> LoadedRecord:
            fields = {
                name: text if text is None or column is None else column.of_text(text)
                for name, column, text in ((n, c, cells[i]) for n, c, i in chosen)
            }
            whole = _encoded(cells[value]) if value >= 0 else encode(fields)
            return LoadedRecord(
                _encoded(cells[key]) if key >= 0 else None,
                whole,
                time_of(cells[time], of_time) if time >= 0 else None,
            )

        return convert


def _chosen(columns: Mapping[str, SchemaColumn], names: list[str]) -> list[tuple[str, Any, int]]:
    if columns:
        return [(name, column, names.index(name)) for name, column in columns.items()]
    return [(name, None, index) for index, name in enumerate(names)]


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _prepended(first: tuple[int, bytes], rows: Iterator[tuple[int, bytes]]) -> Any:
    yield first
    yield from rows


def _with_name(error: RefusedRow, names: Sequence[str]) -> RefusedRow:
    """Return the error with the column's name in place of its number."""
    if error.column.isdigit() and 0 < int(error.column) <= len(names):
        return RefusedRow(error.reason, names[int(error.column) - 1])
    return error


def _wrong_header(path: str, reason: str) -> ConfigError:
    return ConfigError(f"{path}, line 1: {reason}. Repair the header.")


def _records_of_cells(path: str, names: list[str]) -> Callable[[list[str | None]], LoadedRecord]:
    """Return the conversion of rows that `topic export` wrote."""
    places = {name: index for index, name in enumerate(names)}
    if not places.keys() & {"value", "value_base64"}:
        raise ConfigError(f"{path} has no records: there is no column value or value_base64.")

    def part(cells: list[str | None], name: str) -> bytes | None:
        if name in places:
            return _encoded(cells[places[name]])
        coded = f"{name}_base64"
        return bytes_of_base64(cells[places[coded]], coded) if coded in places else None

    def cell(cells: list[str | None], name: str) -> str | None:
        return cells[places[name]] if name in places else None

    def convert(cells: list[str | None]) -> LoadedRecord:
        return LoadedRecord(
            part(cells, "key"),
            part(cells, "value"),
            time_of(cell(cells, "timestamp"), "timestamp"),
            partition_of(cell(cells, "partition")),
        )

    return convert
