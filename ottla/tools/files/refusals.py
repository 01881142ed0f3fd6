"""Rows that are not loaded: `--bad-rows` receives them unchanged; without it the load fails."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ottla.base.errors import ConfigError
from ottla.tools.files.rows import FileRow, RefusedRow

_NOTES = 10


class BadRows:
    """The file of `--bad-rows`, created with its first row; `count` rows were refused."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.count = 0
        self.reasons: list[str] = []
        self._file: Any = None
        self._head = b""
        if path and Path(path).exists():
            raise ConfigError(f"{path} exists: --bad-rows needs the name of a new file")

    def add(self, row: FileRow, error: RefusedRow, head: bytes) -> None:
        """Append a refused row; `head` is the header of its file."""
        self.count += 1
        if len(self.reasons) < _NOTES:
            self.reasons.append(row.position.sentence(error))
        if isinstance(row.source, bytes):
            self._add_text(row, head)
        else:
            self._add_parquet(row)

    def _add_text(self, row: FileRow, head: bytes) -> None:
        if self._file is None:
            self._file = Path(self.path).open("xb")  # noqa: SIM115 (closed by `close`)
            self._head = head
            self._file.write(_ended(head))
        self._check(row, is_same=self._head == head)
        self._file.write(_ended(row.source))

    def _add_parquet(self, row: FileRow) -> None:
        batch, index = row.source
        part = pa.Table.from_batches([batch.slice(index, 1)])
        if self._file is None:
            self._file = pq.ParquetWriter(self.path, part.schema)
        self._check(row, is_same=self._file.schema.equals(part.schema))
        self._file.write_table(part)

    def _check(self, row: FileRow, *, is_same: bool) -> None:
        if not is_same:
            raise ConfigError(
                f"{row.position.path} has other columns than the rows in {self.path}: load files with "
                "other columns by a command of their own"
            )

    def close(self) -> None:
        """Finish the file."""
        if self._file is not None:
            self._file.close()


def _ended(raw: bytes) -> bytes:
    return raw if not raw or raw.endswith(b"\n") else raw + b"\n"
