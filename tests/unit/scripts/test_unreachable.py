"""Every script names the address at which no broker listens, and changes nothing."""

import shlex
import socket
from pathlib import Path

import pytest

from ottla_scripts import entry
from tests.unit.scripts.lines import LINES

pytestmark = pytest.mark.slow

# As Apache Kafka's, these wait for a broker until a timeout of the client.
WAITING = {
    "kafka-console-producer",
    "kafka-producer-perf-test",
    "kafka-consumer-perf-test",
    "kafka-verifiable-producer",
    "kafka-verifiable-consumer",
}
CONNECTED = sorted(name for name, lines in LINES.items() if "$B" in lines[0])


@pytest.mark.parametrize("name", [name for name in CONNECTED if name not in WAITING])
def test_address_without_a_broker_is_a_sentence(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1; two scripts for groups have 0, as Apache Kafka's."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nowhere = f"127.0.0.1:{probe.getsockname()[1]}"
    (tmp_path / "offsets.json").write_text(
        '{"partitions": [{"topic": "a", "partition": 0, "offset": 1}], "version": 1}'
    )
    line = LINES[name][0].replace("$B", nowhere).replace("$D", str(tmp_path))
    code = entry.run(name, shlex.split(line))
    printed = capsys.readouterr()
    assert code == (0 if name in ("kafka-consumer-groups", "kafka-share-groups") else 1)
    assert f"nothing listens on {nowhere}" in printed.out + printed.err
    assert "Traceback" not in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["offsets.json"]


def test_mirror_without_a_source_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The addresses are in files of properties."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nowhere = f"127.0.0.1:{probe.getsockname()[1]}"
    for name in ("source.properties", "target.properties"):
        (tmp_path / name).write_text(f"bootstrap.servers={nowhere}\ngroup.id=m\n")
    line = LINES["kafka-mirror-maker"][0].replace("$D", str(tmp_path))
    assert entry.run("kafka-mirror-maker", shlex.split(line)) == 1
    assert f"nothing listens on {nowhere}" in capsys.readouterr().err


def test_scripts_that_wait_are_known() -> None:
    """A script in WAITING has a command line."""
    assert set(CONNECTED) >= WAITING
