"""Rows of CSV as RFC 4180 writes them: line breaks, quotes and blanks of quoted cells are kept.

A row keeps its own bytes, so that a refused one can be written unchanged. An unquoted empty cell is
null, a quoted one is empty text, as Spark writes and reads them. Blank lines are skipped.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from ottla.base.errors import ConfigError
from ottla.tools.files.rows import RefusedRow

_CHUNK_BYTES = 1 << 20
# Without an end of the row by then, a quote is not closed.
_ROW_BYTES_MAX = 256 << 20
_BOM = b"\xef\xbb\xbf"
# A row of more columns is split cell by cell.
_GROUPS_MAX = 400
# Options of Spark's reader that change nothing here: cells may always have line breaks.
_WITHOUT_EFFECT = frozenset({"multiline"})
_NAMES = {"sep": "separator", "delimiter": "separator", "quote": "quote", "escape": "escape"}


@dataclass(frozen=True)
class Dialect:
    """How cells are written; by default an inner quote is doubled."""

    separator: str = ","
    quote: str = '"'
    escape: str = '"'
    has_header: bool = True
    null: str = ""

    def field(self) -> str:
        """Return a pattern of one cell; a quoted cell never ends within another row."""
        quote, separator = re.escape(self.quote), re.escape(self.separator)
        inner = rf"[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+"
        if self.escape != self.quote:
            escape = re.escape(self.escape)
            inner = rf"(?:[^{quote}{escape}]++|{escape}.)*+"
        rest = rf"[^{separator}\n]*+"
        return rf"(?>{quote}{inner}{quote}{rest}|[^{separator}\n{quote}]{rest}|)"


def dialect_of(options: Mapping[str, str]) -> Dialect:
    """Return the dialect of `-X` options; ConfigError for those that only Spark has."""
    values: dict[str, str | bool] = {}
    for option, value in options.items():
        name = option.lower()
        if name == "header":
            values["has_header"] = _is_true(option, value)
        elif name == "nullvalue":
            values["null"] = value
        elif name in _NAMES:
            text = value.replace("\\t", "\t")
            if len(text) != 1 or not text.isascii() or text in "\r\n":
                raise ConfigError(f"-X {option}={value}: must be one ASCII character")
            values[_NAMES[name]] = text
        elif name not in _WITHOUT_EFFECT:
            raise ConfigError(
                f"-X {option} is an option of Spark's reader: add --engine spark. Without it, -X knows "
                "sep, quote, escape, header and nullValue."
            )
    return Dialect(**values)  # type: ignore[arg-type]


def _is_true(option: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ConfigError(f"-X {option}={value}: must be true or false")
    return value.lower() == "true"


def read_rows(file: BinaryIO, dialect: Dialect) -> Iterator[tuple[int, bytes]]:
    """Yield each row with its line number, as the bytes of the file with its line break."""
    separator = re.escape(dialect.separator)
    cells = rf"{dialect.field()}(?:{separator}{dialect.field()})*+"
    row = re.compile(rf"{cells}\n".encode(), re.DOTALL)
    last = re.compile(cells.encode(), re.DOTALL)
    data, position, line, size = file.read(_CHUNK_BYTES), 0, 1, _CHUNK_BYTES
    if data.startswith(_BOM):
        position = len(_BOM)
    is_end = not data
    while True:
        match = row.match(data, position)
        is_complete = is_end or len(data) - position > _ROW_BYTES_MAX
        if match is None and not is_complete:
            more = file.read(size)
            # A long row is matched again with twice as many bytes.
            size = min(size * 2, 64 * _CHUNK_BYTES)
            data, position, is_end = data[position:] + more, 0, not more
            continue
        if match is None and is_end:
            if position == len(data):
                return
            match = last.fullmatch(data, position)
        # If a quote is never closed, the line alone is refused.
        end = match.end() if match else data.find(b"\n", position) + 1 or len(data)
        size = _CHUNK_BYTES
        raw = data[position:end]
        if raw.strip(b"\r\n"):
            yield line, raw
        line += raw.count(b"\n")
        position = end


class CellReader:
    """Splits the bytes of a row into cells: text, or None."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        separator = re.escape(dialect.separator)
        self._cell = re.compile(rf"({dialect.field()})({separator}|\n|\Z)", re.DOTALL)
        # Of all cells of a row at once, by the number of cells of the last row.
        self._count = 0
        self._row = self._cell

    def split(self, raw: bytes) -> list[str | None]:
        """Return the cells; RefusedRow if the row is not CSV or not UTF-8."""
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise RefusedRow(f"byte {error.start + 1} of the row is not UTF-8") from None
        dialect, null = self._dialect, self._dialect.null
        text = text.removesuffix("\n").removesuffix("\r")
        if dialect.quote not in text:
            return [None if cell == null else cell for cell in text.split(dialect.separator)]
        row = self._row.fullmatch(text) if self._count else None
        if row is not None:
            return [
                self._value(cell, number) if cell[:1] == dialect.quote
                else None if cell == null else cell
                for number, cell in enumerate(row.groups(), 1)
            ]  # fmt: skip
        cells = self._split_by_cell(text)
        self._expect(len(cells))
        return cells

    def _expect(self, count: int) -> None:
        if count != self._count and count <= _GROUPS_MAX:
            dialect = self._dialect
            cells = re.escape(dialect.separator).join([f"({dialect.field()})"] * count)
            self._count, self._row = count, re.compile(cells, re.DOTALL)

    def _split_by_cell(self, text: str) -> list[str | None]:
        cells: list[str | None] = []
        position = 0
        while True:
            match = self._cell.match(text, position)
            if match is None:
                raise RefusedRow("a quote is not closed", f"{len(cells) + 1}")
            cells.append(self._value(match[1], len(cells) + 1))
            position = match.end()
            if not match[2]:
                return cells

    def _value(self, cell: str, number: int) -> str | None:
        dialect = self._dialect
        quote = dialect.quote
        if not cell.startswith(quote):
            return None if cell == dialect.null else cell
        if len(cell) < 2 or cell[-1] != quote:
            raise RefusedRow("text follows the closing quote", f"{number}")
        inner = cell[1:-1]
        if dialect.escape == quote:
            if quote not in inner:
                return inner
            plain = inner.replace(dialect.quote * 2, "")
            if dialect.quote in plain:
                raise RefusedRow("text follows the closing quote", f"{number}")
            return inner.replace(dialect.quote * 2, dialect.quote)
        if dialect.escape not in inner:
            return inner
        return re.sub(re.escape(dialect.escape) + "(.)", r"\1", inner, flags=re.DOTALL)
