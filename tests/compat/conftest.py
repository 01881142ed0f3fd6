"""What the tests with foreign clients share: `ottla up` without one changed setting."""

from collections.abc import Iterator

import pytest

from ottla.testing.process import BrokerProcess


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker as `ottla up` starts it: only port and folder are chosen. One for a module."""
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as running:
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name of the test's own; nobody has created it."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return name.strip("-")
