"""Kafka's tools in one JVM end and write as in a process of their own."""

import os
import signal
import subprocess

import pytest

from tests.compat import java
from tests.compat.java_tools.server import server_of

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.skipif(java.why_not() is not None, reason=str(java.why_not())),
]

TOPICS = "org.apache.kafka.tools.TopicCommand"
DUMP = "kafka.tools.DumpLogSegments"


@pytest.mark.parametrize(
    "words",
    [
        (TOPICS, "--version"),
        (TOPICS, "--help"),
        (TOPICS, "--no-such-option"),
        (DUMP, "--files", "/no/such/folder/0.log"),
        (DUMP,),
    ],
)
def test_a_tool_ends_and_writes_as_in_a_process_of_its_own(words: tuple[str, ...]) -> None:
    """Exit code, standard output and standard error, also if the tool before it failed."""
    class_path = java.kafka_class_path()
    command = java.command(class_path, *words)
    alone = subprocess.run(command, capture_output=True, text=True, timeout=100)
    for _ in range(2):
        shared = java.tool(class_path, *words)
        assert (shared.code, shared.output) == (alone.returncode, alone.stdout)
        # Stack traces differ in who called main.
        assert shared.errors.splitlines()[:1] == alone.stderr.splitlines()[:1]


def test_a_tool_that_fails_fails_the_test_with_what_it_wrote() -> None:
    """`java.run` is for tools that succeed."""
    with pytest.raises(AssertionError, match="no-such-option is not a recognized option"):
        java.run(java.kafka_class_path(), TOPICS, "--no-such-option")


def test_a_server_that_has_died_is_replaced() -> None:
    """A JVM that a tool has ended fails one test only."""
    class_path = java.kafka_class_path()
    java.tool(class_path, TOPICS, "--version")
    server = server_of(class_path, start=lambda: pytest.fail("there is one"))
    os.kill(server.process_id, signal.SIGKILL)
    with pytest.raises(AssertionError, match="the tool ended the JVM"):
        server.run(TOPICS, "--version")
    assert java.tool(class_path, TOPICS, "--version").code == 0
