"""Brokers as processes: `ottla up`, as users start it."""

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import Cluster
from ottla.testing.process import BrokerProcess
from tests.process.load import JavaLoad, Load, Producing
from tests.process.streams_program import BROKER_OPTIONS, Programs

_java = pytest.param(
    "java",
    marks=[
        pytest.mark.nightly("[librdkafka]"),
        pytest.mark.compat,
        pytest.mark.needs("java"),
    ],
)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """Return a running broker with default options, on a free port, with a temporary folder."""
    with BrokerProcess(tmp_path / "data") as running:
        yield running


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    """Programs of the local engine, which end with the test, and their cluster."""
    with (
        Cluster(options=BROKER_OPTIONS) as cluster,
        Programs(cluster, tmp_path) as programs,
    ):
        yield programs


@pytest.fixture(params=["librdkafka", _java])
def producing(request: pytest.FixtureRequest, tmp_path: Path) -> Producing:
    """Return the load of librdkafka; in `make nightly` also the load of the Java client."""
    if request.param == "librdkafka":
        return Load
    return functools.partial(JavaLoad, folder=tmp_path)
