"""One Spark session for all tests of this folder: starting it is what takes time."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from ottla.streams.spark import session
from ottla.testing.cluster import Cluster


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session of two cores that knows the format `ottla`."""
    # The C1 compiler alone: these tests are over before the better one pays.
    settings = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    made = session("ottla-tests", cores=2, settings=settings)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Cluster]:
    """A broker for all tests; each uses topics of its own."""
    with Cluster() as cluster:
        yield cluster
