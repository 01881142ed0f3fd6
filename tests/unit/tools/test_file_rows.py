"""Rows of files: CSV as RFC 4180, columns of a schema, positions of refused rows."""

import csv
import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.errors import ConfigError
from ottla.tools.files.columns import parse_schema
from ottla.tools.files.csv_rows import CellReader, Dialect, dialect_of, read_rows
from ottla.tools.files.rows import RefusedRow
from ottla.tools.files.sources import find_files, format_of

_CELLS = st.text(alphabet=st.sampled_from('a",;\n\r \\ü\0'), max_size=6)


def _rows(data: bytes, dialect: Dialect | None = None) -> list[tuple[int, Any]]:
    chosen = dialect or Dialect()
    cells = CellReader(chosen)
    result: list[tuple[int, Any]] = []
    for line, raw in read_rows(io.BytesIO(data), chosen):
        try:
            result.append((line, cells.split(raw)))
        except RefusedRow as error:
            result.append((line, error.reason))
    return result


def test_line_breaks_quotes_blanks_and_empty_texts_are_kept() -> None:
    """An unquoted empty cell is null, a quoted one is empty text."""
    data = b'"a\nb"," c ",,""\r\n"q""u",x "y" z,\r,d\n'
    assert _rows(data) == [(1, ["a\nb", " c ", None, ""]), (3, ['q"u', 'x "y" z', "\r", "d"])]


def test_last_row_needs_no_line_break_and_blank_lines_are_skipped() -> None:
    """A byte order mark is not part of the first cell."""
    assert _rows(b"\xef\xbb\xbfa,b\n\n\r\nc,d") == [(1, ["a", "b"]), (4, ["c", "d"])]
    assert _rows(b"") == []


def test_a_quote_that_is_never_closed_refuses_its_line_only() -> None:
    """The rows after it are read."""
    rows = _rows(b'a,b\n"c,d\ne,f\n')
    assert rows == [(1, ["a", "b"]), (2, "a quote is not closed"), (3, ["e", "f"])]


def test_text_after_a_closing_quote_is_refused() -> None:
    """It belongs to no cell."""
    assert _rows(b'"a" b,c\n')[0][1] == "text follows the closing quote"


def test_rows_that_are_not_utf_8_are_refused() -> None:
    """The reason has the position of the byte."""
    assert _rows(b"a,\xff\n") == [(1, "byte 3 of the row is not UTF-8")]


def test_rows_longer_than_a_chunk_are_whole() -> None:
    """A quoted cell of megabytes with line breaks is one cell."""
    long = "x\n" * 2_000_000
    rows = _rows(f'"{long}",b\nc,d\n'.encode())
    assert rows == [(1, [long, "b"]), (2_000_002, ["c", "d"])]


def test_dialects_follow_the_options() -> None:
    """Separator, quote, escape and the text of null can be set; other options are Spark's."""
    chosen = dialect_of({"sep": ";", "escape": "\\", "nullValue": "-", "multiLine": "true"})
    assert _rows(b'"a\\"b";-;"-"\n', chosen) == [(1, ['a"b', None, "-"])]
    with pytest.raises(ConfigError, match="inferSchema is an option of Spark's reader"):
        dialect_of({"inferSchema": "true"})
    with pytest.raises(ConfigError, match="must be one ASCII character"):
        dialect_of({"sep": "::"})
    with pytest.raises(ConfigError, match="must be true or false"):
        dialect_of({"header": "no"})


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(_CELLS, min_size=3, max_size=3), max_size=6))
def test_rows_that_another_writer_quotes_are_read_unchanged(rows: list[list[str]]) -> None:
    """Python's csv module writes any text."""
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    assert [cells for _, cells in _rows(text.getvalue().encode())] == rows


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("int", "+007", b"7"),
        ("double", "100.00", b"100.00"),
        ("double", "1e400", b"1e400"),
        ("decimal(5,2)", "123.45", b"123.45"),
        ("boolean", "True", b"true"),
        ("date", "2026-02-14", b'"2026-02-14"'),
        ("timestamp", "2026-02-14T12:00:00Z", b'"2026-02-14T12:00:00Z"'),
        ("string", 'a"b', b'"a\\"b"'),
        ("tinyint", "128", "128 is outside of tinyint"),
        ("int", "1.5", "'1.5' is not of type int"),
        ("bigint", "9" * 40, "is outside of bigint"),
        ("double", "NaN", "'NaN' is not a JSON number"),
        ("decimal(5,2)", "1234.5", "is outside of decimal"),
        ("boolean", "yes", "neither true nor false"),
        ("date", "14.2.", "is not a date"),
        ("timestamp", "noon", "is not a time such as"),
        ("varchar(2)", "abc", "has 3 characters, more than 2"),
    ],
)
def test_values_fit_the_type_of_their_column(kind: str, text: str, expected: Any) -> None:
    """A value keeps its digits; a refused one has column and reason."""
    column = parse_schema(f"c {kind}")["c"]
    if isinstance(expected, bytes):
        assert bytes(column.of_text(text)) == expected
        return
    with pytest.raises(RefusedRow) as refused:
        column.of_text(text)
    assert expected in refused.value.reason
    assert refused.value.column == "c"


def test_json_values_are_not_converted() -> None:
    """A string is no number, and a number no string."""
    columns = parse_schema("n int, s string")
    assert bytes(columns["n"].of_json(b"5")) == b"5"
    for name, raw in (("n", b'"5"'), ("s", b"5")):
        with pytest.raises(RefusedRow):
            columns[name].of_json(raw)


@pytest.mark.parametrize("schema", ["-1", "origin", "a strin", "a int b int", "a=b"])
def test_schema_that_is_none_is_an_error(schema: str) -> None:
    """The sentence has the text and an example."""
    with pytest.raises(ConfigError, match=r"as in 'origin string") as raised:
        parse_schema(schema)
    assert repr(schema) in str(raised.value)


def test_types_that_only_spark_reads_are_named() -> None:
    """The sentence has the option."""
    with pytest.raises(ConfigError, match=r"column a is array<int>.*--engine spark"):
        parse_schema("a array<int>")


def test_files_are_found_by_folder_pattern_and_suffix(tmp_path: Any) -> None:
    """Hidden files are no data; a folder of folders and an address are for Spark."""
    for name in ("b.csv", "a.csv", "_SUCCESS", ".crc"):
        (tmp_path / name).write_text("x")
    names = [path.name for path in find_files([str(tmp_path), str(tmp_path / "*.csv")])]
    assert names == ["a.csv", "b.csv", "a.csv", "b.csv"]
    assert format_of(["x.csv.gz", "y.CSV"]) == "csv"
    with pytest.raises(ConfigError, match="choose it with --format"):
        format_of(["x.csv", "y.json"])
    with pytest.raises(ConfigError, match="There is no file"):
        find_files([str(tmp_path / "none.csv")])
    (tmp_path / "day=1").mkdir()
    with pytest.raises(ConfigError, match="--engine spark"):
        find_files([str(tmp_path)])
    with pytest.raises(ConfigError, match="is not a local path"):
        find_files(["s3a://bucket/x.csv"])
