"""Writes the archive of the classes that Spark loads (`class_archive`), and measures its effect."""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ottla.base.errors import ConfigError
from ottla.streams.spark.session.class_archive import QUIET, SHORT, archive_of

_SECONDS = re.compile(r"^ready after ([\d.]+) s$", re.MULTILINE)
_TIMEOUT_S = 300


@dataclass(frozen=True)
class Warmed:
    """An archive that was written, and the seconds that a first stream took before and takes now.

    `short_s` is the time for short-running work, such as `pipeline run --once`.
    """

    archive: Path
    size_bytes: int
    before_s: float
    after_s: float
    short_s: float


def warm(java_home: str) -> Warmed:
    """Write the archive, in four starts of Spark: before, writing, after (twice).

    Raises ConfigError if it fails.
    """
    archive_of(java_home).unlink(missing_ok=True)
    before_s = _first_stream("")
    archive = write_archive(java_home)
    after_s, short_s = _first_stream(""), _first_stream(SHORT)
    return Warmed(archive, archive.stat().st_size, before_s, after_s, short_s)


def write_archive(java_home: str) -> Path:
    """Write the archive, in one start of Spark, and return its path; raise ConfigError if it fails."""
    archive = archive_of(java_home)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        written = Path(folder) / "classes.jsa"
        _first_stream(f"-XX:ArchiveClassesAtExit={written} {QUIET}")
        if not written.is_file():
            raise ConfigError(f"Java in {java_home} wrote no archive: Spark starts without one.")
        os.replace(written, archive)
    return archive


def _first_stream(options: str) -> float:
    """Run a small stream in a new Python process; return its duration in seconds."""
    process = subprocess.run(  # noqa: S603  this Python, a module of ours
        [sys.executable, "-m", "ottla.streams.spark.session.first_stream", options],
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    match = _SECONDS.search(process.stdout)
    if match is None:
        last = (process.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise ConfigError(f"Spark did not start: {last}")
    return float(match[1])
