"""Scripts that a signal ends have the exit codes of Apache Kafka's, which are Java programs."""

import signal
import subprocess
import sys

import pytest

from ottla.testing import Cluster
from tests.integration.tools.test_mirror import produce

pytestmark = pytest.mark.slow

_SCRIPT = "from ottla_scripts.entry import main; main('{}')"
_PROGRAM = _SCRIPT.format("kafka-console-consumer")
# Options, and the text of a line that the script prints once it runs.
_ENDLESS = {
    "kafka-replica-verification": ("--broker-list $B --topics-include orders", "is started"),
    "kafka-verifiable-producer": ("--bootstrap-server $B --topic orders", "producer_send_success"),
    "kafka-verifiable-consumer": (
        "--bootstrap-server $B --topic orders --group-id g",
        "records_consumed",
    ),
}


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


@pytest.mark.parametrize("script", _ENDLESS)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_endless_script_has_the_code_of_the_signal(
    number: int, code: int, script: str, ottla_cluster: Cluster
) -> None:
    """So have Apache Kafka's: the scripts of 4.3, and kafka-replica-verification of 3.9."""
    produce(ottla_cluster, "orders", [b"a"])
    options, sign = _ENDLESS[script]
    line = options.replace("$B", ottla_cluster.bootstrap).split()
    with subprocess.Popen(
        [sys.executable, "-c", _SCRIPT.format(script), *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any(sign in text for text in process.stdout)
        process.send_signal(number)
        rest, _ = process.communicate(timeout=30)
        assert process.returncode == code
    if script == "kafka-verifiable-consumer":
        requested, complete = (rest.index(f"shutdown_{name}") for name in ("requested", "complete"))
        assert requested < complete
