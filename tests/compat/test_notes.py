"""The notes' programs run against Apache Kafka 4.3.0."""

from collections.abc import Callable, Iterator

import pytest

from tests.client.notes import CHECKS
from tests.compat import java

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]

_VERSION = "4.3.0"


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an Apache Kafka broker."""
    node = java.KafkaNode(tmp_path_factory.mktemp("kafka"), version=_VERSION)
    node.start()
    yield node.bootstrap
    node.stop()


@pytest.mark.parametrize("check", CHECKS)
def test_program_of_the_notes(bootstrap: str, check: Callable[[str], None]) -> None:
    """Each program does on Apache Kafka what the notes say."""
    check(bootstrap)
