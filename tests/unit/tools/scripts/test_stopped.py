"""Scripts that a signal ends have the exit codes of Apache Kafka's, which are Java programs."""

import signal
import subprocess
import sys

import pytest

from ottla.testing import Cluster
from tests.unit.tools.test_mirror import produce

_PROGRAM = "from ottla.tools.scripts.entry import main; main('kafka-console-consumer')"


@pytest.mark.parametrize("group", [[], ["--group", "g"]])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_console_consumer_has_the_code_of_the_signal(
    number: int, code: int, group: list[str], ottla_cluster: Cluster
) -> None:
    """The number of records is printed nevertheless."""
    produce(ottla_cluster, "orders", [b"a"])
    line = ["--bootstrap-server", ottla_cluster.bootstrap, "--topic", "orders", "--from-beginning"]
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *line, *group],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "a\n"
        process.send_signal(number)
        assert process.communicate(timeout=30) == ("", "Processed a total of 1 messages\n")
        assert process.returncode == code
