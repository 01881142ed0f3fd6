"""The files of a command line: folders, patterns, compressed files, and their format."""

import bz2
import glob
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast

from ottla.base.errors import ConfigError

_SUFFIXES = {"csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet"}
_COMPRESSIONS = frozenset({"gz", "bz2"})
# Spark and other writers mark files that are no data with these.
_HIDDEN = ("_", ".")


def format_of(names: Sequence[str]) -> str:
    """Return the format that all names show, or ConfigError."""
    formats = {_SUFFIXES.get(_suffix(name)) for name in names}
    if len(formats) != 1 or None in formats:
        raise ConfigError("the file names do not show the format: choose it with --format")
    return str(formats.pop())


def _suffix(name: str) -> str:
    stem, _, suffix = name.lower().rpartition(".")
    return stem.rpartition(".")[2] if suffix in _COMPRESSIONS else suffix


def find_files(names: Sequence[str]) -> list[Path]:
    """Return the files of names, folders and patterns, in order."""
    return [path for name in names for path in _matching(name)]


def _matching(name: str) -> list[Path]:
    refuse_address(name)
    if Path(name).exists():
        paths = [Path(name)]
    else:
        paths = [Path(found) for found in sorted(glob.glob(name))]
    if not paths:
        raise ConfigError(f"There is no file {name!r}: check the path.")
    return [file for path in paths for file in _files_in(path)]


def _files_in(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files: list[Path] = []
    for entry in sorted(path.iterdir()):
        if entry.name.startswith(_HIDDEN):
            continue
        if entry.is_dir():
            raise ConfigError(
                f"{path} has folders, such as {entry.name!r}: name the files by a pattern, or add "
                "--engine spark, which reads partitioned folders."
            )
        files.append(entry)
    return files


def refuse_address(name: str) -> None:
    """Raise ConfigError for files of other machines."""
    if "://" in name:
        raise ConfigError(f"{name} is not a local path: add --engine spark, which opens addresses.")


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading; .gz and .bz2 are decompressed."""
    if path.suffix.lower() == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if path.suffix.lower() == ".bz2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    return path.open("rb")
