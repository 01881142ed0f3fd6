"""Scripts that wait for a broker, as processes."""

import json
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.scripts.lines import LINES
from tests.unit.scripts.test_unreachable import WAITING

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", sorted(WAITING))
def test_script_that_waits_for_a_broker_says_so(name: str, tmp_path: Path) -> None:
    """A warning names the address, on standard error."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        nowhere = f"127.0.0.1:{probe.getsockname()[1]}"
    line = LINES[name][0].replace("$B", nowhere).replace("$D", str(tmp_path))
    code = f"from ottla_scripts import entry; entry.run({name!r}, {shlex.split(line)!r})"
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
    code = f"from ottla_scripts import entry; entry.run('kafka-verifiable-producer', {line})"
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
