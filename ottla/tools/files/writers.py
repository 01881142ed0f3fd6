"""Writers of exported records: CSV, JSON lines, Parquet; a door of pyarrow.

A file has its final name only once it is whole: `_NAME` until then, which readers of folders skip.
"""

from pathlib import Path
from typing import Any, BinaryIO, Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from ottla.tools.files.rows import text_of_milliseconds

# Rows of a group of a Parquet file, by size.
_GROUP_BYTES = 16 << 20
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
# Arrow's calendar ends in the year 32767.
_YEAR_10000_MS = 253_402_300_800_000


class FileWriter(Protocol):
    """Writes batches to one file."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""

    def close(self) -> None:
        """Finish the file."""


def open_writer(path: Path, file_format: str, schema: pa.Schema) -> FileWriter:
    """Create a file with columns of `schema`."""
    if file_format == "parquet":
        return _ParquetWriter(path, schema)
    return _CsvWriter(path, schema) if file_format == "csv" else _JsonWriter(path)


def _with_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with moments as text, in milliseconds and UTC, as Spark writes them."""
    for index, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type):
            moments = batch.column(index).cast(pa.timestamp("ms", tz="UTC"), safe=False)
            texts = _texts(moments)
            batch = batch.set_column(index, pa.field(field.name, pa.string()), texts)
    return batch


def _texts(moments: pa.Array) -> pa.Array:
    numbers = moments.cast(pa.int64())
    if (pc.max(numbers).as_py() or 0) < _YEAR_10000_MS:
        return pc.strftime(moments, format=_TIME_FORMAT)
    texts = [None if at is None else text_of_milliseconds(at) for at in numbers.to_pylist()]
    return pa.array(texts, pa.string())


class _ParquetWriter:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(path, schema)
        self._waiting: list[pa.RecordBatch] = []
        self._size = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._size += batch.nbytes
        if self._size >= _GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
        self._waiting, self._size = [], 0

    def close(self) -> None:
        self._write_group()
        self._writer.close()


class _CsvWriter:
    """Quotes all texts, so that null and empty text differ, and doubles inner quotes."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        texts = _with_texts(pa.RecordBatch.from_pylist([], schema)).schema
        options = pyarrow.csv.WriteOptions(quoting_style="needed")
        self._writer = pyarrow.csv.CSVWriter(path, texts, write_options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(_with_texts(batch))

    def close(self) -> None:
        self._writer.close()


class _JsonWriter:
    """Writes one object per line, with nulls; bytes of headers are base64, as Spark writes them."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("wb")
        self._encoder = msgspec.json.Encoder()

    def write(self, batch: pa.RecordBatch) -> None:
        rows: list[dict[str, Any]] = _with_texts(batch).to_pylist()
        self._file.write(self._encoder.encode_lines(rows))

    def close(self) -> None:
        self._file.close()
