"""Every script names the address at which no broker listens, and changes nothing."""

import json
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.tools.scripts import entry
from tests.unit.tools.scripts.test_json import LINES

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


@pytest.mark.parametrize("name", sorted(WAITING))
def test_script_that_waits_for_a_broker_says_so(name: str, tmp_path: Path) -> None:
    """A warning names the address, on standard error."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nowhere = f"127.0.0.1:{probe.getsockname()[1]}"
    line = LINES[name][0].replace("$B", nowhere).replace("$D", str(tmp_path))
    code = f"from ottla.tools.scripts import entry; entry.run({name!r}, {shlex.split(line)!r})"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write("a record\n")
        process.stdin.close()
        warnings = (text for text in process.stderr if text.startswith("WARN"))
        assert f"Connection to {nowhere} could not be established" in next(warnings)
        process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("limit", [[], ["--throughput", "5"], ["--max-messages", "3"]])
def test_ctrl_c_ends_a_verifiable_producer_without_a_broker(limit: list[str]) -> None:
    """The records that wait are reported as errors, and the totals follow."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nowhere = f"127.0.0.1:{probe.getsockname()[1]}"
    line = ["--bootstrap-server", nowhere, "--topic", "orders", *limit]
    code = f"from ottla.tools.scripts import entry; entry.run('kafka-verifiable-producer', {line})"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        warnings = (text for text in process.stderr if text.startswith("WARN"))
        assert next(warnings)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    events = [json.loads(text) for text in out.splitlines()]
    names = [event["name"] for event in events]
    assert (names[0], names[-2:]) == ("startup_complete", ["shutdown_complete", "tool_data"])
    failed = [event for event in events if event["name"] == "producer_send_error"]
    assert events[-1]["sent"] == len(failed) > 0
    assert list(failed[0]) == [
        "timestamp", "name", "topic", "key", "value", "exception", "message",
    ]  # fmt: skip
