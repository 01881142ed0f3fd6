"""The notes' programs run against Apache Kafka 4.3.0."""

from collections.abc import Callable

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
def bootstrap() -> str:
    """The address of an Apache Kafka broker."""
    return java.shared_node(_VERSION, java.GROUPS_OF_ALL_TYPES).bootstrap


@pytest.mark.parametrize("check", CHECKS)
def test_program_of_the_notes(bootstrap: str, check: Callable[[str], None]) -> None:
    """Each program does on Apache Kafka what the notes say."""
    check(bootstrap)
