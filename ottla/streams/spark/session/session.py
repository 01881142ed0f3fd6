"""A Spark session with the settings that Ottla's Python workers need.

By default Spark starts `python3` from PATH for its workers and binds to any address of the machine.
Here workers are the current Python with the current program's modules, and everything on this
machine uses the loopback address. With the master of a cluster, Spark chooses the addresses, and
PYSPARK_PYTHON is used if it is set.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ottla.streams.settings.java import find_java_home
from ottla.streams.spark.connector.save_mode import append_by_default
from ottla.streams.spark.connector.source import OttlaSource
from ottla.streams.spark.session.class_archive import archive_options
from ottla.streams.spark.session.local_files import local_files_settings
from ottla.streams.spark.session.worker_python import worker_python

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
    # A worker receives 10 000 rows as one batch. Spark's allocator does not reuse a block of 10 MB:
    # each batch would allocate all its pages again, which takes a third of the time to transfer
    # rows of 1 KB.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2m",
    # The default provider keeps all state in memory.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


# Spark's own default logs its start and every retry at length. In a zip on a worker's path, a
# module's own file name is relative.
_LOG_CONFIG = Path(__file__).absolute().parent / "log4j2.properties"
_LOGGING = f"-Dlog4j2.configurationFile={_LOG_CONFIG.as_uri()}"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_IN_PROCESS = re.compile(r"|local(\[.*\])?")
_HERE = re.compile(r"|local(-cluster)?(\[.*\])?|spark://(127\.0\.0\.1|localhost):\d+")


def register(spark: SparkSession) -> None:
    """Register `format("ottla")` with a session; workers must be able to import `ottla`."""
    spark.dataSource.register(OttlaSource)
    append_by_default(OttlaSource.name())


def is_cluster(master: str) -> bool:
    """Return True if executors are separate processes."""
    return _IN_PROCESS.fullmatch(master) is None


def is_here(master: str) -> bool:
    """Return True if everything is certainly on this machine, so that the loopback address can be
    used.
    """
    return _HERE.fullmatch(master) is not None


def _own_folders() -> list[str]:
    """Return the folders of this program's modules, which workers need to import them."""
    installed = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    folders = [os.path.abspath(folder) for folder in sys.path]
    return [folder for folder in folders if not folder.startswith(installed)]


def _choose_python(master: str) -> None:
    """Make workers use this Python; on a cluster, PYSPARK_PYTHON takes precedence if it is set."""
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if not (is_cluster(master) and os.environ.get("PYSPARK_PYTHON")):
        os.environ["PYSPARK_PYTHON"] = worker_python() if is_here(master) else sys.executable


def session(
    name: str = "ottla", *, cores: int | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session with `format("ottla")`: local, unless the settings have another
    `spark.master`.

    `cores` defaults to all of the machine's; `settings` override the defaults. Sets JAVA_HOME,
    PYSPARK_PYTHON and SPARK_LOCAL_IP for this process if they are needed. Raises ConfigError if
    there is no Java.
    """
    count = cores or os.cpu_count() or 1
    os.environ["JAVA_HOME"] = find_java_home()
    master = (settings or {}).get("spark.master", "")
    _choose_python(master)
    path = os.pathsep.join(_own_folders())
    builder = SparkSession.builder.master(f"local[{count}]").appName(name)
    # One shuffle partition for each core: a checkpoint keeps its state in this number of parts for
    # good.
    results = {"spark.sql.shuffle.partitions": str(count), "spark.executorEnv.PYTHONPATH": path}
    chosen = _SETTINGS | results
    if is_here(master):
        os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
        chosen |= _LOOPBACK_SETTINGS
    chosen |= settings or {}
    if not is_cluster(master):
        # Executors on other machines would not find the classes.
        chosen |= local_files_settings(os.environ["JAVA_HOME"], chosen)
    java_options = chosen.get(_JAVA_OPTIONS, "")
    archive = archive_options(os.environ["JAVA_HOME"], java_options)
    chosen[_JAVA_OPTIONS] = " ".join(filter(None, (_LOGGING, archive, java_options)))
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    _quieten(spark)
    register(spark)
    return spark


def silence_failed_queries(spark: SparkSession) -> None:
    """Stop Spark from logging that a query has failed: the caller reports the error itself."""
    log4j: Any = spark.sparkContext._jvm
    log4j = log4j.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(_QUERIES, log4j.Level.FATAL)


_QUERIES = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"


def _quieten(spark: SparkSession) -> None:
    """Stop PySpark's server of accumulators, which Ottla does not use, from printing a traceback
    when the JVM exits.
    """
    server: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
