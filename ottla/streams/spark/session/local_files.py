"""Lets Spark keep checkpoints on this machine's disk without starting processes.

Hadoop's local file system runs `chmod` and `readlink` about thirty times in a micro-batch with
state, which takes a third of its time. Three small Java classes (java/) call Java's own functions
instead. A Java without development tools has no compiler, but Spark includes Janino, which compiles
them once in a third of a second. The JAR is kept in the user's cache folder.
"""

import hashlib
import logging
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home

_log = logging.getLogger(__name__)
_SOURCES = Path(__file__).absolute().parent / "java"
_CLASS_PATH = "spark.driver.extraClassPath"
_CLASSES = {
    "spark.hadoop.fs.file.impl": "ottla.LocalFiles",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "ottla.LocalContext",
}
_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
_TIMEOUT_S = 60


def cache_folder() -> Path:
    """Return the cache folder for files generated for Spark; it may not exist."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "ottla"


def jar() -> Path:
    """Return the path of the JAR with the classes; it may not exist."""
    sources = b"".join(source.read_bytes() for source in sorted(_SOURCES.glob("*.java")))
    key = hashlib.sha256(sources).hexdigest()[:12]
    return cache_folder() / f"files-{pyspark.__version__}-{key}.jar"


def local_files_settings(java_home: str, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of Spark that use the classes; compile them first if that has not been
    done.

    Returns no settings if `given` names other file systems, or if the classes cannot be compiled:
    Spark then uses Hadoop's own.
    """
    if any(name in chosen for name in _CLASSES):
        return {}
    target = jar()
    if not target.is_file() and not _compile_classes(java_home, target):
        return {}
    if not _is_reachable():
        return {}
    return {
        **_CLASSES,
        _CLASS_PATH: os.pathsep.join(filter(None, (str(target), chosen.get(_CLASS_PATH)))),
    }


def _is_reachable() -> bool:
    """Return True if Spark's Java can load the classes: a running JVM has a fixed class path."""
    gateway: Any = SparkContext._gateway
    if gateway is None:
        return True
    try:
        gateway.jvm.java.lang.Class.forName(_CLASSES["spark.hadoop.fs.file.impl"])
    except (Py4JError, OSError):
        return False
    return True


def _compile_classes(java_home: str, target: Path) -> bool:
    """Compile the classes; return True if it succeeded."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            _compile(java_home, folder)
            packed = Path(folder) / "classes.jar"
            with zipfile.ZipFile(packed, "w") as archive:
                for class_file in sorted(Path(folder).rglob("*.class")):
                    archive.write(class_file, class_file.relative_to(folder))
            packed.replace(target)
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning(
            "Micro-batches take longer: the classes for local files cannot be compiled (%s)", error
        )
        return False
    return True


def _compile(java_home: str, folder: str) -> None:
    jars = Path(_find_spark_home()) / "jars"
    compiler = [*jars.glob("janino-*.jar"), *jars.glob("commons-compiler-*.jar")]
    # Hadoop's classes, and slf4j, whose types they use in fields.
    class_path = [*jars.glob("hadoop-client-*.jar"), *jars.glob("slf4j-api-*.jar")]
    command = [str(Path(java_home) / "bin" / "java"), "-XX:TieredStopAtLevel=1", "-cp"]
    command += [os.pathsep.join(map(str, compiler)), _COMPILER, "-d", folder]
    command += ["-classpath", os.pathsep.join(map(str, class_path))]
    command += [str(source) for source in sorted(_SOURCES.glob("*.java"))]
    process = subprocess.run(  # noqa: S603  the Java that Spark runs on, sources of ours
        command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
    )
    if (
        not any(Path(folder).rglob("*.class"))
        or process.returncode
        or "Exception" in process.stderr
    ):
        first_line = (process.stderr.strip().splitlines() or ["the compiler printed nothing"])[0]
        raise OSError(first_line)
