"""One Spark session for all tests of this folder, because its start takes long."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from ottla.testing.cluster import Cluster
from tests.spark.programs import WAYS, Run, in_session, run_alone
from tests.spark.sessions import shared_session, shorten_starts


@pytest.fixture(scope="session", autouse=True)
def short_starts() -> Iterator[None]:
    """Start Spark's processes in less time, also the processes of programs."""
    with pytest.MonkeyPatch.context() as patch:
        shorten_starts(patch)
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session with two cores and the format `ottla`."""
    spark_session = shared_session()
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


@pytest.fixture(params=WAYS)
def run_program(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs a program: in the tests' Spark session, or in a process of its own."""
    if request.param == "program":
        return run_alone
    return in_session(request.getfixturevalue("spark"), capsys)
