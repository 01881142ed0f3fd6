"""A Spark session for pipelines, with the settings that a Python pipeline needs.

Spark starts `python3` from PATH for its workers and binds to whatever address the machine has; here workers are this
Python with the modules that this program has, and all that is on this machine stays on the loopback. With the master of a
cluster, addresses are Spark's own choice, and so is PYSPARK_PYTHON where it is set.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ottla.streams.settings.java import find_java_home
from ottla.streams.spark.connector.source import OttlaSource
from ottla.streams.spark.session.class_archive import archive_options
from ottla.streams.spark.session.local_files import local_files_settings

_LOOPBACK = "127.0.0.1"
_LOOPBACK_SETTINGS = {
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
}
_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # 10 000 rows are one batch for a worker, and 10 MB of them are memory that Spark's allocator does not keep: each batch
    # would have all its pages made anew, a third of what it takes to hand over rows of 1 KB.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2m",
    # The default provider keeps all state in memory.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


# Spark's own default tells of its start at length, and of every retry.
# In a zip on a worker's path a module's own place is relative.
_LOG_CONFIG = Path(__file__).absolute().parent / "log4j2.properties"
_LOGGING = f"-Dlog4j2.configurationFile={_LOG_CONFIG.as_uri()}"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_IN_PROCESS = re.compile(r"|local(\[.*\])?")
_HERE = re.compile(r"|local(-cluster)?(\[.*\])?|spark://(127\.0\.0\.1|localhost):\d+")


def register(spark: SparkSession) -> None:
    """Make `format("ottla")` known to a session; workers must be able to import `ottla`."""
    spark.dataSource.register(OttlaSource)


def is_cluster(master: str) -> bool:
    """Tell whether executors are processes of their own."""
    return _IN_PROCESS.fullmatch(master) is None


def is_here(master: str) -> bool:
    """Tell whether all of it is surely on this machine, so that the loopback reaches it."""
    return _HERE.fullmatch(master) is not None


def _own_folders() -> list[str]:
    """Return where this program finds its own modules: workers, which begin anew, must find them, too."""
    installed = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    folders = [os.path.abspath(each) for each in sys.path]
    return [each for each in folders if not each.startswith(installed)]


def _choose_python(master: str) -> None:
    """Have workers be this Python; on a cluster it may be elsewhere, as PYSPARK_PYTHON says."""
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if not (is_cluster(master) and os.environ.get("PYSPARK_PYTHON")):
        os.environ["PYSPARK_PYTHON"] = sys.executable


def session(
    name: str = "ottla", *, cores: int | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session that knows `format("ottla")`: local, unless the settings have another `spark.master`.

    `cores` are all of the machine's where not given, `settings` go over the defaults. Sets JAVA_HOME,
    PYSPARK_PYTHON and SPARK_LOCAL_IP for this process where they matter; ConfigError without a Java.
    """
    count = cores or os.cpu_count() or 1
    os.environ["JAVA_HOME"] = find_java_home()
    master = (settings or {}).get("spark.master", "")
    _choose_python(master)
    path = os.pathsep.join(_own_folders())
    builder = SparkSession.builder.master(f"local[{count}]").appName(name)
    # One shuffle partition a core: state is cut that way for as long as a checkpoint lives.
    found = {"spark.sql.shuffle.partitions": str(count), "spark.executorEnv.PYTHONPATH": path}
    chosen = _SETTINGS | found
    if is_here(master):
        os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
        chosen |= _LOOPBACK_SETTINGS
    chosen |= settings or {}
    if not is_cluster(master):
        # Executors elsewhere would not find the classes.
        chosen |= local_files_settings(os.environ["JAVA_HOME"], chosen)
    given = chosen.get(_JAVA_OPTIONS, "")
    archive = archive_options(os.environ["JAVA_HOME"], given)
    chosen[_JAVA_OPTIONS] = " ".join(filter(None, (_LOGGING, archive, given)))
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    _quieten(spark)
    register(spark)
    return spark


def _quieten(spark: SparkSession) -> None:
    """Let PySpark's server of accumulators, which Ottla has none of, not tell of the JVM's end with a stack."""
    server: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
