"""Writes rows of files as records, in this process.

A chunk of rows becomes columns, and the columnar sender writes them with acks=all and without
duplicates. The rows before a refused one are written before the load fails, so that its error has
an exact number.

Not done: with `--bad-rows`, rows that only the broker refuses: if the caller may not read the
topic's configuration, a record beyond its limits ends the load.
"""

import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from ottla.base.errors import ConfigError, OttlaError
from ottla.client.brokers import Brokers
from ottla.client.sender import ColumnSender, SendSettings
from ottla.tools.files.csv_reader import CsvReader
from ottla.tools.files.csv_rows import Dialect
from ottla.tools.files.json_reader import JsonReader
from ottla.tools.files.limits import OVERHEAD_BYTES, TopicLimits, limits_of
from ottla.tools.files.mapping import LoadMapping
from ottla.tools.files.parquet_reader import ParquetReader
from ottla.tools.files.refusals import BadRows
from ottla.tools.files.rows import FileRow, LoadedRecord, RefusedRow
from ottla.tools.files.sources import find_files
from ottla.tools.output import ProgressBar, count_text, note
from ottla.wire.records.columnar_arrays import HEADERS_TYPE
from ottla.wire.records.columnar_encoding import Rows, encode_rows
from ottla.wire.records.columnar_partitioner import partitions_of
from ottla.wire.records.columnar_varints import Integers
from ottla.wire.records.compression import CODECS

_CHUNK_ROWS = 20_000
_CHUNK_BYTES = 8 << 20
_BATCH_BYTES = 900_000


@dataclass(frozen=True, kw_only=True)
class LoadJob:
    """What is loaded: the files, their format, and the file of refused rows, if it is named."""

    topic: str
    partitions: int
    files: tuple[str, ...]
    format: str
    mapping: LoadMapping
    dialect: Dialect = field(default_factory=Dialect)
    compression: str = "none"
    bad_rows: str = ""


@dataclass(frozen=True)
class LoadResult:
    """The numbers of written and of refused rows."""

    records: int
    refused: int


def load_files(brokers: Brokers, job: LoadJob) -> LoadResult:
    """Write the rows of files to a topic; ConfigError if a row is refused without `bad_rows`."""
    paths = find_files(job.files)
    bad_rows = BadRows(job.bad_rows)
    limits = limits_of(brokers, job.topic, job.partitions)
    batch_bytes = min(_BATCH_BYTES, limits.batch_bytes - OVERHEAD_BYTES)
    codec = CODECS[job.compression]
    settings = SendSettings(batch_bytes=max(batch_bytes, 1), compression=codec)
    total = sum(path.stat().st_size for path in paths)
    is_compressed = any(path.suffix in (".gz", ".bz2") for path in paths)
    try:
        with (
            ColumnSender(brokers, settings) as sender,
            ProgressBar(job.topic, None if is_compressed else total, is_bytes=True) as progress,
        ):
            chunks = _Chunks(sender, limits, codec)
            try:
                for path in paths:
                    _load_file(path, job, chunks, bad_rows, progress)
                chunks.flush()
            except OttlaError as error:
                if not isinstance(error, ConfigError):
                    sent = count_text(sender.records_sent, "record")
                    note(f"{sent} were acknowledged before the error; others may be written, too.")
                raise
            return LoadResult(sender.records_sent, bad_rows.count)
    finally:
        bad_rows.close()
        _report(bad_rows)


def _load_file(
    path: Path, job: LoadJob, chunks: "_Chunks", bad_rows: BadRows, progress: ProgressBar
) -> None:
    reader = _reader(job)
    try:
        for row, record in reader.read(path, progress.advance):
            refusal = record if isinstance(record, RefusedRow) else chunks.add(record)
            if refusal is None:
                continue
            if not job.bad_rows:
                raise _failed(chunks, row, refusal)
            bad_rows.add(row, refusal, reader.head)
    except (EOFError, zlib.error) as error:
        sent = count_text(chunks.flush(), "record")
        raise ConfigError(f"{path} is damaged: {error}. {sent} before it are loaded.") from error


def _reader(job: LoadJob) -> CsvReader | JsonReader | ParquetReader:
    if job.format == "csv":
        return CsvReader(job.mapping, job.dialect, note)
    return (
        JsonReader(job.mapping, note) if job.format == "json" else ParquetReader(job.mapping, note)
    )


def _report(bad_rows: BadRows) -> None:
    for reason in bad_rows.reasons:
        note(reason)
    if bad_rows.count > len(bad_rows.reasons):
        note(f"{bad_rows.count - len(bad_rows.reasons)} more rows were refused.")


def _failed(chunks: "_Chunks", row: FileRow, refusal: RefusedRow) -> ConfigError:
    sent = chunks.flush()
    return ConfigError(
        f"{row.position.sentence(refusal)}. The rows before it are loaded ({count_text(sent, 'record')}), "
        "the others are not. Repair the row and load the rest, or add --bad-rows FILE, which "
        "receives refused rows while all others are loaded."
    )


class _Chunks:
    """Collects records, and sends them by partition."""

    def __init__(self, sender: ColumnSender, limits: TopicLimits, codec: int) -> None:
        self._sender = sender
        self._limits = limits
        self._codec = codec
        self._records: list[LoadedRecord] = []
        self._size = 0
        self._sticky = 0
        self._now_ms = time.time_ns() // 1_000_000

    def add(self, record: LoadedRecord) -> RefusedRow | None:
        """Collect a record; return the reason if the topic refuses it."""
        size = record.size()
        refusal = self._limits.refusal(record, size, self._now_ms, self._batch_size)
        if refusal is not None:
            return refusal
        self._records.append(record)
        self._size += size
        if len(self._records) >= _CHUNK_ROWS or self._size >= _CHUNK_BYTES:
            self._send()
        return None

    def _batch_size(self, record: LoadedRecord) -> int:
        (batch,) = encode_rows(_rows([record]), batch_bytes=1, compression=self._codec)
        return batch.size_bytes

    def flush(self) -> int:
        """Write all records; return the number of all that are acknowledged."""
        self._send()
        self._sender.flush()
        return self._sender.records_sent

    def _send(self) -> None:
        records, self._records, self._size = self._records, [], 0
        if not records:
            return
        count = self._limits.partitions
        self._now_ms = time.time_ns() // 1_000_000
        self._sticky = (self._sticky + 1) % count
        rows = _rows(records)
        partitions = _partitions(records, rows, count, self._sticky)
        order = np.argsort(partitions, kind="stable")
        ordered = _taken(rows, order)
        numbers, starts = np.unique(partitions[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        for number, start, end in zip(numbers.tolist(), starts.tolist(), ends, strict=True):
            self._sender.send(self._limits.topic, number, ordered.slice(start, end))


def _rows(records: list[LoadedRecord]) -> Rows:
    keys, values, timestamps, _, headers = zip(*records, strict=True)
    now = time.time_ns() // 1_000_000
    return Rows(
        pa.array(values, pa.binary()),
        pa.array(keys, pa.binary()) if any(key is not None for key in keys) else None,
        pa.array(headers, HEADERS_TYPE) if any(headers) else None,
        np.array([now if at is None else at for at in timestamps], np.int64),
    )


def _partitions(records: list[LoadedRecord], rows: Rows, count: int, sticky: int) -> Integers:
    if rows.keys is None:
        partitions = np.full(len(records), sticky, np.int64)
    else:
        partitions = partitions_of(rows.keys, count, sticky)
    chosen = [-1 if record.partition is None else record.partition for record in records]
    named = np.array(chosen, np.int64)
    return np.where(named >= 0, named, partitions)


def _taken(rows: Rows, order: Integers) -> Rows:
    chosen = pa.array(order)
    return Rows(
        rows.values.take(chosen),
        None if rows.keys is None else rows.keys.take(chosen),
        None if rows.headers is None else rows.headers.take(chosen),
        rows.timestamps[order],
    )
