"""Writes the records of a topic to files, in this process: one file per partition.

Records come by column from the bulk fetcher, which reads what is committed. Keys and values are
text; the export fails at a record that is no UTF-8, because text cannot hold it, and names the
option that writes bytes.
"""

import base64
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ConfigError
from ottla.client.admin.offsets import LATEST, READ_COMMITTED, TopicPartition, list_offsets
from ottla.client.brokers import Brokers
from ottla.client.fetcher import Fetcher, FetchSettings
from ottla.tools.files.columns import SchemaColumn, parse_schema
from ottla.tools.files.json_reader import decode_object, typed_fields
from ottla.tools.files.rows import RefusedRow
from ottla.tools.files.writers import FileWriter, open_writer
from ottla.tools.output import ProgressBar, count_text, note
from ottla.wire.records.columnar import COLUMNS, ColumnDecoder

_READ = ("key", "value", "partition", "offset", "timestamp", "headers")
_OWN = ("key", "partition", "offset", "timestamp")
_ARROW_TYPES = {
    "boolean": pa.bool_(), "date": pa.date32(), "double": pa.float64(),
    **dict.fromkeys(("byte", "tinyint"), pa.int8()),
    **dict.fromkeys(("short", "smallint"), pa.int16()),
    **dict.fromkeys(("int", "integer"), pa.int32()),
    **dict.fromkeys(("long", "bigint"), pa.int64()),
    **dict.fromkeys(("float", "real"), pa.float32()),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ExportJob:
    """The part of a topic to export, and its form.

    `until_ms` leaves out the records from that time on. `as_bytes` writes keys and values as bytes:
    binary columns in Parquet, base64 in `key_base64` and `value_base64` elsewhere.
    """

    topic: str
    folder: Path
    format: str
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    until_ms: int | None = None
    as_bytes: bool = False
    schema: str = ""


def export_topic(brokers: Brokers, job: ExportJob) -> int:
    """Write files, and replace the contents of the folder; return the number of records."""
    form = _Form(job)
    ends = _committed_ends(brokers, job)
    total = sum(end - job.starts[key] for key, end in ends.items())
    job.folder.mkdir(parents=True, exist_ok=True)
    former = list(job.folder.iterdir())
    files = _Files(job, form)
    try:
        with (
            Fetcher(brokers, FetchSettings(read_committed=True)) as fetcher,
            ProgressBar(job.topic, total) as progress,
        ):
            for key in sorted(ends):
                decoder = ColumnDecoder(*key, _READ)
                files.write(key[1], fetcher.fetch(decoder, job.starts[key], ends[key]), progress)
        files.publish(former)
    finally:
        files.remove_unfinished()
    form.report()
    return files.count


def _committed_ends(brokers: Brokers, job: ExportJob) -> dict[TopicPartition, int]:
    """Return the ends, but not beyond an open transaction, whose records no consumer reads yet."""
    latest = dict.fromkeys(job.ends, LATEST)
    stable = list_offsets(brokers, latest, isolation_level=READ_COMMITTED) if latest else {}
    ends: dict[TopicPartition, int] = {}
    for key, end in sorted(job.ends.items()):
        ends[key] = max(min(end, stable[key].offset), job.starts[key])
        if ends[key] < end:
            note(
                f"{key[0]}-{key[1]}: exported up to offset {ends[key]}, where an open transaction begins; "
                f"the selected part ends at {end}."
            )
    return ends


class _Files:
    """The files of an export; they have their final names once all of them are whole."""

    def __init__(self, job: ExportJob, form: "_Form") -> None:
        self._job = job
        self._form = form
        self._unfinished: list[Path] = []
        self.count = 0

    def write(
        self, partition: int, batches: Iterable[pa.RecordBatch], progress: ProgressBar
    ) -> None:
        """Write the records of one partition; no file without records."""
        writer: FileWriter | None = None
        reached = self._job.starts[self._job.topic, partition]
        try:
            for batch in batches:
                following = batch.column("offset")[-1].as_py() + 1
                selected = self._form.select(batch)
                if selected.num_rows:
                    writer = writer or self._open(partition)
                    writer.write(self._form.convert(selected))
                    self.count += selected.num_rows
                progress.advance(following - reached)
                reached = following
        finally:
            if writer is not None:
                writer.close()

    def _open(self, partition: int) -> FileWriter:
        path = self._job.folder / f"_part-{partition:05}.{self._job.format}"
        self._unfinished.append(path)
        return open_writer(path, self._job.format, self._form.schema)

    def publish(self, former: Iterable[Path]) -> None:
        """Remove the former contents of the folder, and name the files."""
        if not self._unfinished:
            # Readers find the columns of an empty topic, too.
            self._open(0).close()
        for path in former:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path not in self._unfinished:
                path.unlink()
        for path in self._unfinished:
            path.rename(path.with_name(path.name.removeprefix("_")))
        self._unfinished = []

    def remove_unfinished(self) -> None:
        """Remove the files of an export that failed."""
        for path in self._unfinished:
            path.unlink(missing_ok=True)


class _Form:
    """The columns of the files, and what they cannot hold, which `report` prints."""

    def __init__(self, job: ExportJob) -> None:
        self._job = job
        self._columns = parse_schema(job.schema) if job.schema else {}
        self._has_headers = job.format != "csv" and not job.schema
        self._headers = 0
        self._misfits = 0
        self._first_misfit = ""
        self.schema = pa.schema(list(self._fields()))

    def _fields(self) -> Iterator[pa.Field]:
        data_type = pa.binary() if self._is_binary else pa.string()
        names = {name: name for name in _READ}
        if self._job.as_bytes and not self._is_binary:
            names |= {"key": "key_base64", "value": "value_base64"}
        if self._columns:
            for column in self._columns.values():
                yield pa.field(column.name, _arrow_type(column))
            names = {name: f"_{name}" for name in _OWN}
        for name, shown in names.items():
            if name != "headers" or self._has_headers:
                is_data = name in ("key", "value")
                yield pa.field(shown, data_type if is_data else COLUMNS.field(name).type)

    @property
    def _is_binary(self) -> bool:
        return self._job.as_bytes and self._job.format == "parquet"

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records before the end, if that is a time; one without a time is before it."""
        if self._job.until_ms is None:
            return batch
        microseconds = batch.column("timestamp").cast(pa.int64())
        return batch.filter(pc.less(microseconds, self._job.until_ms * 1000))

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of the files."""
        if not self._has_headers:
            headers = batch.column("headers")
            self._headers += len(headers) - headers.null_count
        columns = {name: batch.column(name) for name in _READ}
        columns["key"] = self._data(batch, "key")
        if self._columns:
            arrays = [*self._typed(batch), *(columns[name] for name in _OWN)]
            return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        columns["value"] = self._data(batch, "value")
        chosen = [columns[name] for name in _READ if name != "headers" or self._has_headers]
        return pa.RecordBatch.from_arrays(chosen, schema=self.schema)

    def _data(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        values = batch.column(name)
        if self._is_binary:
            return values
        if self._job.as_bytes and not self._columns:
            return pa.array(map(_base64, values.to_pylist()), pa.string())
        try:
            return values.cast(pa.string())
        except pa.ArrowInvalid:
            row = next(n for n, data in enumerate(values.to_pylist()) if not _is_text(data))
            place = (
                f"partition {batch.column('partition')[row]}, offset {batch.column('offset')[row]}"
            )
            raise ConfigError(
                f"{self._job.topic}, {place}: the {name} is not UTF-8, so that it cannot be exported "
                "as text: add --bytes"
                + ("." if self._job.format == "parquet" else ", which writes base64.")
            ) from None

    def _typed(self, batch: pa.RecordBatch) -> list[pa.Array]:
        rows = []
        for index, value in enumerate(batch.column("value").to_pylist()):
            try:
                fields = decode_object(b"" if value is None else value)
                absent = dict.fromkeys(self._columns.keys() - fields.keys(), b"null")
                rows.append(typed_fields(self._columns, absent | fields))
            except RefusedRow as error:
                self._note_misfit(batch, index, error)
                rows.append(dict.fromkeys(self._columns))
        return [
            _array(column, [row[name] for row in rows]) for name, column in self._columns.items()
        ]

    def _note_misfit(self, batch: pa.RecordBatch, index: int, error: RefusedRow) -> None:
        self._misfits += 1
        if not self._first_misfit:
            place = [batch.column(name)[index] for name in ("partition", "offset")]
            named = f"column {error.column!r}: " if error.column else ""
            self._first_misfit = f"partition {place[0]}, offset {place[1]}: {named}{error.reason}"

    def report(self) -> None:
        """Print the losses, if there are any."""
        if self._misfits:
            note(
                f"{count_text(self._misfits, 'value')} did not fit --schema and became empty columns. "
                f"First: {self._first_misfit}"
            )
        if self._headers:
            form = "CSV files" if self._job.format == "csv" else "Files with --schema"
            note(
                f"{form} have no headers: the headers of {count_text(self._headers, 'record')} are "
                "left out. "
                "Use Parquet or JSON, without --schema, to keep them."
            )


def _arrow_type(column: SchemaColumn) -> pa.DataType:
    if column.is_time:
        return COLUMNS.field("timestamp").type
    if column.decimal is not None:
        return pa.decimal128(*column.decimal)
    return _ARROW_TYPES.get(column.kind, pa.string())


def _array(column: SchemaColumn, values: list[Any]) -> pa.Array:
    plain = [None if value is None else column.arrow_value(value) for value in values]
    return pa.array(plain, _arrow_type(column))


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _is_text(data: bytes | None) -> bool:
    try:
        (data or b"").decode()
    except UnicodeDecodeError:
        return False
    return True
