"""One Spark session for all tests of this folder, because its start takes long."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from ottla.streams.settings.java import find_java_home
from ottla.streams.spark import session
from ottla.streams.spark.session.archive_writing import write_archive
from ottla.streams.spark.session.class_archive import SHORT, archive_of
from ottla.testing.cluster import Cluster


@pytest.fixture(scope="session", autouse=True)
def archive() -> None:
    """Write the archive of `ottla spark warm`, which shortens thirty program starts by 3 s each."""
    java_home = find_java_home()
    if not archive_of(java_home).is_file():
        write_archive(java_home)


@pytest.fixture(scope="session", autouse=True)
def short_options() -> Iterator[None]:
    """Start the JVMs of programs with the options for short-running work, too.

    Spark's scripts add these variables to the command lines of the launcher and the driver.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS"):
            patch.setenv(name, SHORT)
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with two cores and the format `ottla`."""
    # Only the C1 compiler: these tests end before the better one pays off.
    settings = {"spark.driver.extraJavaOptions": SHORT}
    spark_session = session("ottla-tests", cores=2, settings=settings)
    yield spark_session
    spark_session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Cluster]:
    """A broker for all tests, each of which has its own topics.

    It deletes records past their retention within a second, not after half a minute: many records
    of the tests have old timestamps.
    """
    options = {"log.initial.task.delay.ms": "0", "log.retention.check.interval.ms": "1000"}
    with Cluster(options=options) as cluster:
        yield cluster
