"""Fixtures of the tests with foreign clients: `ottla up` with default settings."""

from collections.abc import Iterator

import pytest

from ottla.testing.process import BrokerProcess


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Return a broker as `ottla up` starts it, with a free port and a temporary folder; one per
    module.
    """
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as running:
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """Return the name of a topic of this test, which does not exist yet."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return name.strip("-")
