"""The notes' programs run against Ottla."""

from collections.abc import Callable

import pytest

from ottla.testing import Cluster
from tests.client.notes import CHECKS


@pytest.mark.parametrize("check", CHECKS)
def test_program_of_the_notes(cluster: Cluster, check: Callable[[str], None]) -> None:
    """Each program does on Ottla what the notes say."""
    check(cluster.bootstrap)
