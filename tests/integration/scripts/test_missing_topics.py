"""A console consumer that is started before its topic exists reads the topic's first records."""

import subprocess
import sys
import time

import pytest

from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.testing import Cluster
from ottla_scripts.console.missing_topics import await_topic, await_topic_of_group
from tests.integration.tools.test_mirror import produce

pytestmark = pytest.mark.slow

_PROGRAM = "from ottla_scripts.entry import main; main('kafka-console-consumer')"
_PATIENCE_S = 20.0


@pytest.mark.parametrize(
    "options", [[], ["--partition", "0"], ["--group", "readers", "--from-beginning"]]
)
def test_first_record_of_a_new_topic_is_read(ottla_cluster: Cluster, options: list[str]) -> None:
    """The script creates the topic, and loses no record that is written after its start."""
    line = ["--bootstrap-server", ottla_cluster.bootstrap, "--topic", "early", *options]
    with (
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *line, "--max-messages", "1", "--timeout-ms", "20000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        ottla_cluster.admin() as brokers,
    ):
        _wait_for(brokers, "early")
        produce(ottla_cluster, "early", [b"first"])
        assert process.communicate(timeout=30) == ("first\n", "Processed a total of 1 messages\n")


def test_topic_is_not_created_against_the_option(ottla_cluster: Cluster) -> None:
    """With allow.auto.create.topics=false the consumer only waits."""
    properties = {"allow.auto.create.topics": "false"}
    turns = iter([True, True, True, False])
    with ottla_cluster.admin() as brokers:
        assert await_topic(brokers, "never", properties, lambda: next(turns)) == ([], True)
        assert "never" not in {topic.name for topic in topics.list_topics(brokers)}
        assert await_topic(brokers, "now", {}, lambda: True) == ([("now", 0)], True)
        assert await_topic(brokers, "now", properties, lambda: True) == ([("now", 0)], False)


def test_other_errors_are_left_to_the_consumer() -> None:
    """A member whose cluster cannot be reached waits for it, as before."""
    assert await_topic_of_group("127.0.0.1:1", "any", {}, lambda: True)


def _wait_for(brokers: Brokers, name: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while name not in {topic.name for topic in topics.list_topics(brokers)}:
        assert time.monotonic() < deadline
