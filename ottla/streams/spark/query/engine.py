"""Runs an application (streams/application/instance.py) on Spark: the session, its queries, their
progress.
"""

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ottla.base.errors import ConfigError, OttlaError
from ottla.streams.application.progress import Progress
from ottla.streams.spark.connector.ranges import Offsets
from ottla.streams.spark.query.compile import QuerySettings
from ottla.streams.spark.query.failures import QueryError, query_error
from ottla.streams.spark.query.query import StreamsQuery, start
from ottla.streams.spark.query.reports import progress_of, total
from ottla.streams.spark.session.packages import PackageFiles
from ottla.streams.spark.session.session import (
    is_cluster,
    register,
    session,
    silence_failed_queries,
)
from ottla.streams.task.task import TaskSettings
from ottla.streams.topology.topology import Topology


@dataclass(frozen=True)
class SparkSettings:
    """The Spark session to use: an existing one, or a new one that the engine stops again.

    `master` is the URL of a cluster or `local[N]`. Executors receive the package `ottla` and the
    `py_files`. `settings` are Spark's own.
    """

    spark: SparkSession | None = None
    master: str | None = None
    cores: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    py_files: Sequence[str] = ()


class SparkEngine:
    """Runs one topology."""

    def __init__(
        self,
        topology: Topology,
        tasks: TaskSettings,
        queries: QuerySettings,
        spark_settings: SparkSettings,
    ) -> None:
        self._topology = topology
        self._tasks = tasks
        self._queries = queries
        self._settings = spark_settings
        self._spark: SparkSession | None = None
        self._is_ours = False
        self._files = PackageFiles()

    def open(self) -> None:
        """Create the session, or use the one in the settings."""
        settings = self._settings
        with _readable_errors():
            if settings.spark is None:
                self._is_ours = SparkContext._active_spark_context is None
                spark_settings = dict(settings.settings)
                if settings.master is not None:
                    spark_settings["spark.master"] = settings.master
                if is_cluster(settings.master or ""):
                    # Paths of this machine do not exist on the cluster: the package is shipped.
                    spark_settings.setdefault("spark.executorEnv.PYTHONPATH", "")
                name = self._tasks.application_id
                self._spark = session(name, cores=settings.cores, settings=spark_settings)
                # The application logs the error with its reason.
                silence_failed_queries(self._spark)
            else:
                self._spark = settings.spark
                register(self._spark)
            self._ship(self._spark)

    def _ship(self, spark: SparkSession) -> None:
        if not isinstance(spark, SparkSession):
            raise ConfigError("Use a session of pyspark.sql, not one of Spark Connect.")
        context = spark.sparkContext
        files = list(self._settings.py_files)
        if is_cluster(context.master or ""):
            files.append(self._files.zip_package("ottla"))
        for file in files:
            context.addPyFile(file)

    def start(self) -> "SparkQuery":
        """Start the queries."""
        assert self._spark is not None, "call open first"
        with _readable_errors():
            _make_active(self._spark)
            return SparkQuery(
                start(
                    self._topology,
                    self._spark,
                    application_id=self._tasks.application_id,
                    bootstrap=self._queries.bootstrap,
                    checkpoint=self._queries.checkpoint,
                    task_settings=self._tasks,
                    query_settings=replace(self._queries, keeps_changelogs=True),
                )
            )

    def close(self) -> None:
        """Stop the session if this engine created it."""
        if self._spark is not None and self._is_ours:
            with contextlib.suppress(PySparkException, Py4JError, OSError):
                self._spark.stop()
        self._spark = None
        self._files.remove()


class SparkQuery:
    """The running queries of an application; a Query of streams/application/instance.py."""

    def __init__(self, query: StreamsQuery) -> None:
        self.query = query
        self._firsts: dict[str, list[Offsets]] = {}
        self._dropped: dict[str, int] = {}
        self._misplaced_keys: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def is_active(self) -> bool:
        """True if all queries are running; False if the JVM has exited."""
        try:
            return self.query.is_active
        except (Py4JError, OSError):
            return False

    @property
    def is_running(self) -> bool:
        """True: a query that has started processes micro-batches."""
        return True

    @property
    def error(self) -> Exception | None:
        """The error that stopped a query; None if none has failed."""
        try:
            return self.query.error
        except (Py4JError, OSError) as error:
            return QueryError(f"Spark's driver has exited: {error}")

    def progress(self) -> Progress:
        """Return the total progress of all queries."""
        results: list[Progress] = []
        with self._lock, contextlib.suppress(PySparkException, Py4JError, OSError):
            for query in self.query.queries:
                report = query.lastProgress
                if report is not None:
                    results.append(progress_of(report, self._firsts.setdefault(str(query.id), [])))
            self._dropped = self.query.dropped()
            self._misplaced_keys = self.query.misplaced_keys()
        return replace(total(results), dropped=self._dropped, misplaced_keys=self._misplaced_keys)

    def is_idle(self) -> bool:
        """Return True if all queries are idle; False if Spark or the brokers do not respond."""
        try:
            return self.query.is_idle()
        except (PySparkException, Py4JError, OSError, OttlaError):
            return False

    def stop(self) -> None:
        """Stop all queries."""
        with contextlib.suppress(PySparkException, Py4JError, OSError):
            self.query.stop()


def _make_active(spark: SparkSession) -> None:
    """Make the session active in this thread: Spark finds registered data sources through the
    thread's session.
    """
    classes: Any = SparkSession
    classes._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)


@contextlib.contextmanager
def _readable_errors() -> Iterator[None]:
    """Raise Spark's exceptions as QueryError, with a message for users."""
    try:
        yield
    except Py4JJavaError as error:
        raise query_error(str(error.java_exception)) from None
    except (PySparkException, Py4JError) as error:
        raise query_error(str(error)) from None
