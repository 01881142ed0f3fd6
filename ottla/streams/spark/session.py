"""A Spark session for pipelines on one machine, with the settings that a Python pipeline needs.

Spark starts `python3` from PATH for its workers and binds to whatever address the machine has; here workers are this
Python with the modules that this program has, and all stays on the loopback. Clusters bring their own session: `register` is enough there.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from ottla.streams.java import find_java_home
from ottla.streams.spark.source import OttlaSource
from ottla.streams.spark.warming import archive_options

_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
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


def register(spark: SparkSession) -> None:
    """Make `format("ottla")` known to a session; workers must be able to import `ottla`."""
    spark.dataSource.register(OttlaSource)


def _own_folders() -> list[str]:
    """Return where this program finds its own modules: workers, which begin anew, must find them, too."""
    installed = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    folders = [os.path.abspath(each) for each in sys.path]
    return [each for each in folders if not each.startswith(installed)]


def session(
    name: str = "ottla", *, cores: int | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a local session that knows `format("ottla")`.

    `cores` are all of the machine's where not given, `settings` go over the defaults. Sets JAVA_HOME,
    PYSPARK_PYTHON and SPARK_LOCAL_IP for this process where they matter; ConfigError without a Java.
    """
    count = cores or os.cpu_count() or 1
    os.environ["JAVA_HOME"] = find_java_home()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    path = os.pathsep.join(_own_folders())
    builder = SparkSession.builder.master(f"local[{count}]").appName(name)
    # One shuffle partition a core: state is cut that way for as long as a checkpoint lives.
    found = {"spark.sql.shuffle.partitions": str(count), "spark.executorEnv.PYTHONPATH": path}
    chosen = _SETTINGS | found | dict(settings or {})
    given = chosen.get(_JAVA_OPTIONS, "")
    archive = archive_options(os.environ["JAVA_HOME"], given)
    chosen[_JAVA_OPTIONS] = " ".join(filter(None, (_LOGGING, archive, given)))
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark
