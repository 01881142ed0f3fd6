"""One Spark session for all tests of this folder: starting it is what takes time."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from ottla.streams.settings.java import find_java_home
from ottla.streams.spark import session
from ottla.streams.spark.session.class_archive import SHORT, archive_of, write_archive
from ottla.testing.cluster import Cluster


@pytest.fixture(scope="session", autouse=True)
def archive() -> None:
    """What `ottla spark warm` writes: some thirty programs are started here, three seconds faster each."""
    java_home = find_java_home()
    if not archive_of(java_home).is_file():
        write_archive(java_home)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session of two cores that knows the format `ottla`."""
    # The C1 compiler alone: these tests are over before the better one pays.
    settings = {"spark.driver.extraJavaOptions": SHORT}
    made = session("ottla-tests", cores=2, settings=settings)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Cluster]:
    """A broker for all tests; each uses topics of its own."""
    with Cluster() as cluster:
        yield cluster
