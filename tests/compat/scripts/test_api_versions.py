"""`kafka-broker-api-versions` prints of Ottla's brokers what Apache Kafka's tool prints of them."""

import subprocess

import pytest

from ottla.testing import Cluster
from tests.compat import java
from tests.compat.scripts.classes import CLASSES
from tests.compat.scripts.test_replay import run_script
from tests.compat.scripts.transcript import MODERN

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]
_NAME = "kafka-broker-api-versions"


def test_output_is_that_of_apache_kafkas_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have the same bytes, for each broker."""
    with Cluster(brokers=2, options={"broker.rack": "a"}) as cluster:
        at = ("--bootstrap-server", cluster.bootstrap)
        line = java.command(java.kafka_class_path(MODERN), CLASSES[_NAME], *at)
        theirs = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
        ours = run_script([_NAME, *at], b"", monkeypatch)
    assert _by_broker(ours.out) == _by_broker(theirs.stdout)
    assert (ours.code, ours.errors) == (0, "")


def _by_broker(text: str) -> list[str]:
    """Return the texts of brokers in a fixed order: Apache Kafka's order is a hash table's."""
    assert text.endswith("\n)\n")
    return sorted(text.removesuffix("\n)\n").split("\n)\n"))
