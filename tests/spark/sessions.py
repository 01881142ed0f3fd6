"""The Spark session of all tests in a process, and what makes starts of Spark shorter.

The start of Java takes longer than most tests.
"""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.streams.settings.java import find_java_home
from ottla.streams.spark import session
from ottla.streams.spark.session.archive_writing import write_archive
from ottla.streams.spark.session.class_archive import SHORT, archive_of

# Only the C1 compiler: these tests end before the better one pays off.
_SETTINGS = {"spark.driver.extraJavaOptions": SHORT}


def shorten_starts(patch: pytest.MonkeyPatch) -> None:
    """Set the environment with which this process and its programs start Spark.

    Spark's scripts add the variables of Java's options to the command lines of launcher and driver.
    """
    for name in ("SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS"):
        patch.setenv(name, SHORT)
    java_home = find_java_home()
    # The archive of `ottla spark warm` saves 3 s of each start.
    if not archive_of(java_home).is_file():
        write_archive(java_home)


def shared_session() -> SparkSession:
    """Return a local session with two cores and the format `ottla`, the same at each call."""
    with pytest.MonkeyPatch.context() as patch:
        shorten_starts(patch)
        return session("ottla-tests", cores=2, settings=_SETTINGS)


class Shown:
    """The plans and properties that Spark's web pages show; without the pages' redaction.

    The plans belong to the queries since this object was created.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._session: Any = spark._jsparkSession
        self._first = self._last() + 1

    def plans(self) -> list[str]:
        """Return the plan of each query."""
        store = self._store()
        executions = map(store.execution, range(self._first, self._last() + 1))
        return [str(each.get().physicalPlanDescription()) for each in executions if each.nonEmpty()]

    def properties(self) -> str:
        """Return the properties of Spark, Hadoop and Java."""
        shown = self._session.sparkContext().statusStore().environmentInfo()
        kinds = (shown.sparkProperties(), shown.hadoopProperties(), shown.systemProperties())
        return "\n".join(str(properties.mkString("\n")) for properties in kinds)

    def _store(self) -> Any:
        # Listeners collect the plans in a thread of their own.
        self._session.sparkContext().listenerBus().waitUntilEmpty()
        return self._session.sharedState().statusStore()

    def _last(self) -> int:
        """Return the number of the last query; -1 before the first query."""
        store = self._store()
        count = store.executionsCount()
        last = store.executionsList(count - 1, 1) if count else None
        return int(last.apply(0).executionId()) if last else -1
