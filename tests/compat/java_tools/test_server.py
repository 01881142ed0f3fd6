"""Kafka's tools in one JVM have the exit codes and the output of a separate process."""

import os
import signal
import subprocess

import pytest

from ottla.testing import Cluster
from tests.compat import java
from tests.compat.java_tools.server import server_of

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
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
def test_tool_has_exit_code_and_output_of_separate_process(words: tuple[str, ...]) -> None:
    """Exit code, standard output and standard error are the same, also after a tool that failed."""
    class_path = java.kafka_class_path()
    command = java.command(class_path, *words)
    alone = subprocess.run(command, capture_output=True, text=True, timeout=100)
    for _ in range(2):
        shared = java.tool(class_path, *words)
        assert (shared.code, shared.output) == (alone.returncode, alone.stdout)
        # Stack traces differ in the caller of main.
        assert shared.errors.splitlines()[:1] == alone.stderr.splitlines()[:1]


def test_run_raises_error_with_output_of_failed_tool() -> None:
    """`java.run` raises an error with the output of a tool that fails."""
    with pytest.raises(AssertionError, match="no-such-option is not a recognized option"):
        java.run(java.kafka_class_path(), TOPICS, "--no-such-option")


def test_clients_that_a_tool_leaves_open_are_stopped() -> None:
    """Their threads would log warnings between the output of the next tools."""
    class_path = java.kafka_class_path("4.3.0")
    words = (f"{java.TOOLS}.TransactionsCommand", "describe", "--transactional-id", "none")
    with Cluster() as cluster:
        to_cluster = ("--bootstrap-server", cluster.bootstrap)
        assert java.tool(class_path, words[0], *to_cluster, *words[1:]).code == 1
    server = server_of((class_path,), start=lambda: pytest.fail("there is one"))
    done = subprocess.run(
        ["jcmd", str(server.process_id), "Thread.print"], capture_output=True, text=True, timeout=60
    )
    assert '"main"' in done.stdout
    assert "kafka-admin-client-thread" not in done.stdout


def test_dead_server_is_replaced() -> None:
    """If a tool ends the JVM, only one test fails; the next tool starts a new JVM."""
    class_path = java.kafka_class_path()
    java.tool(class_path, TOPICS, "--version")
    server = server_of((class_path,), start=lambda: pytest.fail("there is one"))
    os.kill(server.process_id, signal.SIGKILL)
    with pytest.raises(AssertionError, match="the tool ended the JVM"):
        server.run(TOPICS, "--version")
    assert java.tool(class_path, TOPICS, "--version").code == 0
