"""Brokers as processes: `ottla up`, as users start it."""

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing.process import BrokerProcess
from tests.process.load import JavaLoad, Load, Producing

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


@pytest.fixture(params=["librdkafka", _java])
def producing(request: pytest.FixtureRequest, tmp_path: Path) -> Producing:
    """Return the load of librdkafka; in `make nightly` also the load of the Java client."""
    if request.param == "librdkafka":
        return Load
    return functools.partial(JavaLoad, folder=tmp_path)
