"""`kafka-run-class`: the script for the name of a Java class."""

import pytest

from ottla_scripts import entry
from ottla_scripts.run_class import CLASSES, target
from ottla_scripts.table import SCRIPTS
from tests.compat.scripts import classes

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("script", list(classes.CLASSES))
def test_class_of_a_script(script: str) -> None:
    """Every class that Apache Kafka's scripts run is known by its full name."""
    assert target([classes.CLASSES[script], "--list"]) == (script, ["--list"])


def test_every_class_is_a_script() -> None:
    """No class leads to a script that does not exist."""
    assert set(CLASSES.values()) <= set(SCRIPTS)


@pytest.mark.parametrize(
    ("words", "result"),
    [
        (["kafka.Kafka", "x"], ("kafka-server-start", ["x"])),
        (["-daemon", "kafka.Kafka", "x"], ("kafka-server-start", ["-daemon", "x"])),
        (["-name", "server", "-loggc", "kafka.Kafka", "x"], ("kafka-server-start", ["x"])),
        (["org.apache.zookeeper.ZooKeeperMain", "-server", "h:1", "ls", "/"],
         ("zookeeper-shell", ["h:1", "ls", "/"])),
        (["org.apache.kafka.connect.mirror.MirrorMaker", "x"], ("connect-mirror-maker", ["x"])),
        (["kafka.tools.MirrorMaker", "x"], ("kafka-mirror-maker", ["x"])),
    ],
)  # fmt: skip
def test_options_before_the_class(words: list[str], result: tuple[str, list[str]]) -> None:
    """They are the same as in Apache Kafka's script; -daemon starts a server in the background."""
    assert target(words) == result


@pytest.mark.parametrize("words", [[], ["-daemon"], ["com.example.Tool"]])
def test_no_class_of_a_tool(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Without a known class the exit code is 1, with the usage or the known classes."""
    assert entry.run("kafka-run-class", words) == 1
    errors = capsys.readouterr().err
    assert "USAGE: " in errors or "is not one of Apache Kafka's tools" in errors
