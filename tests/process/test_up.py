"""`ottla up`: how a broker starts, stops, and reports errors."""

import contextlib
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.client.errors import NotReachable
from ottla.testing.process import COMMAND, BrokerProcess, run_command

pytestmark = pytest.mark.slow


def test_one_line_says_that_it_is_ready(tmp_path: Path) -> None:
    """The line has the address and the data directory; after it every client is served."""
    process = subprocess.Popen(
        [*COMMAND, "up", "--port", "0", "--data", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    match = re.fullmatch(r"Ottla is ready on (127\.0\.0\.1:\d+) \(data in (.+)\)\n", line)
    assert match is not None, line
    assert match.group(2) == str(tmp_path / "data")
    with Brokers(match.group(1)) as brokers:
        assert topics.list_topics(brokers) == []
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20) == ("", "Ottla has stopped.\n")


def test_scripts_can_read_the_ready_line(tmp_path: Path) -> None:
    """With JSON output the ready line is one JSON object."""
    process = subprocess.Popen(
        [*COMMAND, "up", "--port", "0", "--data", str(tmp_path), "--output", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    facts = json.loads(process.stdout.readline())
    process.terminate()
    process.communicate(timeout=20)
    assert facts.keys() == {"bootstrap", "data", "cluster_id"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_cleanly(broker: BrokerProcess, number: int) -> None:
    """After Ctrl-C and a supervisor's TERM the exit code is 0, without a traceback, with a clean
    shutdown.
    """
    with Brokers(broker.bootstrap) as brokers:
        topics.create_topic(brokers, "t")
        assert broker.stop(number) == (0, "Ottla has stopped.\n")
    assert (broker.data / ".kafka_cleanshutdown").exists()


def test_broker_runs_without_a_reader_of_its_ready_line(tmp_path: Path) -> None:
    """If the script that started it has ended, the broker still serves, and stops cleanly."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [*COMMAND, "up", "--port", str(port), "--data", str(tmp_path)],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(write)
    assert _listed(f"127.0.0.1:{port}", process) == []
    process.terminate()
    assert process.communicate(timeout=20)[1] == "Ottla has stopped.\n"
    assert process.returncode == 0


def _listed(bootstrap: str, process: "subprocess.Popen[str]") -> list[topics.Topic]:
    while process.poll() is None:
        with Brokers(bootstrap) as brokers, contextlib.suppress(NotReachable):
            return topics.list_topics(brokers)
    raise AssertionError(process.communicate()[1])


def test_waiting_clients_do_not_delay_the_stop(broker: BrokerProcess) -> None:
    """A consumer at the end of a topic always has an open request, which does not delay the stop."""
    run_command("produce", "t", "-b", broker.bootstrap, stdin=b"1\n")
    consumer = subprocess.Popen(
        [*COMMAND, "consume", "t", "-q", "-b", broker.bootstrap], stdout=subprocess.PIPE
    )
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == b"1\n"
    started = time.monotonic()
    assert broker.stop()[0] == 0
    assert time.monotonic() - started < 4
    consumer.kill()
    consumer.communicate()


def test_start_takes_less_than_a_second(tmp_path: Path) -> None:
    """The best of three starts takes less than a second of CPU time from the command to the ready
    line.
    """
    seconds = []
    for number in range(3):
        with BrokerProcess(tmp_path / str(number)) as broker:
            seconds.append(broker.cpu_seconds)
    assert min(seconds) < 1.0


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_restart_keeps_everything(broker: BrokerProcess, is_clean: bool) -> None:
    """Topics, their configuration, records and committed offsets survive a restart, also after a
    crash.
    """
    words = ("-b", broker.bootstrap)
    run_command("topic", "create", "t", "--partitions", "2", "-c", "retention.ms=-1", *words)
    run_command("produce", "t", "-p", "1", *words, stdin=b"1\n2\n3\n")
    run_command("consume", "t", "--group", "g", "-c", "2", *words)
    if is_clean:
        broker.restart()
    else:
        broker.kill()
        broker.start()
    assert run_command("consume", "t", "-e", *words).stdout == b"1\n2\n3\n"
    assert run_command("consume", "t", "-e", "--group", "g", *words).stdout == b"3\n"
    listed = run_command("topic", "config", "t", *words).stdout
    assert b"retention.ms  -1" in listed


def _refusal(data: Path, *options: str) -> str:
    """Start with these options, expect an error, return its one line."""
    done = run_command("up", "--port", "0", "--data", str(data), *options)
    assert (done.returncode, done.stdout) == (1, b"")
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("ottla: ")
    return lines[0]


def test_used_port_is_an_error(tmp_path: Path) -> None:
    """The error says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        sentence = _refusal(tmp_path, "--port", str(port))
    assert f"Cannot listen on 127.0.0.1:{port}" in sentence
    assert "choose another port (0 selects a free one)" in sentence
    assert "run `ottla up --port 0`" in sentence


@pytest.mark.parametrize("options", [[], ["--brokers", "2"], ["--brokers", "2", "--processes"]])
@pytest.mark.parametrize("is_there", [False, True])
def test_failed_start_leaves_no_files(tmp_path: Path, options: list[str], is_there: bool) -> None:
    """A folder that was absent is absent again, and one that was empty is empty again."""
    data = tmp_path / "new" / "data"
    if is_there:
        data.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        done = run_command("up", "--port", port, "--data", str(data), *options)
    assert done.returncode == 1
    assert list(tmp_path.rglob("*")) == ([data.parent, data] if is_there else [])


def test_broker_that_cannot_print_its_ready_line_leaves_no_files(tmp_path: Path) -> None:
    """It stops, because nothing else reports its address."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "up", "--port", "0", "--data", str(tmp_path / "data")],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "cannot write to standard output" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_failed_start_keeps_the_data_of_an_earlier_one(broker: BrokerProcess) -> None:
    """Only files that the failed start itself has created are removed."""
    assert broker.stop()[0] == 0
    before = sorted(path.name for path in broker.data.iterdir())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        _refusal(broker.data, "--port", str(listener.getsockname()[1]))
    assert sorted(path.name for path in broker.data.iterdir()) == before
    assert "meta.properties" in before


def test_directory_in_use_is_an_error(broker: BrokerProcess) -> None:
    """A second broker on the same directory is an error; the first one is not affected."""
    sentence = _refusal(broker.data)
    assert "another process uses this directory" in sentence
    assert f"run `ottla broker stop --data {broker.data}`" in sentence
    with Brokers(broker.bootstrap) as brokers:
        assert topics.list_topics(brokers) == []


def test_damaged_directory_is_an_error(tmp_path: Path) -> None:
    """The error names the damaged file, and nothing is changed."""
    damaged = tmp_path / "meta.properties"
    damaged.write_text("garbage\n")
    assert "meta.properties cannot be read" in _refusal(tmp_path)
    assert damaged.read_text() == "garbage\n"
    assert list(tmp_path.iterdir()) == [damaged]


def test_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    """A folder that cannot be created, because a file has its name, is an error."""
    (tmp_path / "file").touch()
    sentence = _refusal(tmp_path / "file" / "data")
    assert str(tmp_path / "file" / "data") in sentence


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("num.partition=3", "did you mean num.partitions?"),
        ("num.partitions=many", "Invalid value many for configuration num.partitions"),
        ("listeners=PLAINTEXT://127.0.0.1:1", "--port and -o listeners=PLAINTEXT://127.0.0.1:1"),
        ("listeners=SSL://127.0.0.1:0", "ssl.keystore.location is not set"),
    ],
)
def test_invalid_option_is_an_error(tmp_path: Path, option: str, words: str) -> None:
    """The error names the option and its valid values."""
    config = tmp_path / "server.properties"
    if option.startswith("listeners=SSL"):
        config.write_text(option + "\n")
        done = run_command("up", "--config", str(config), "--data", str(tmp_path / "data"))
        sentence = done.stderr.decode()
        assert (done.returncode, sentence.count("\n")) == (1, 1)
    else:
        sentence = _refusal(tmp_path / "data", "--option", option)
    assert words in sentence


def test_a_configuration_file_is_read(tmp_path: Path) -> None:
    """The options of Kafka's server.properties that Ottla supports are read."""
    config = tmp_path / "server.properties"
    config.write_text(
        f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path}/d\nnum.partitions=5\n"
    )
    process = subprocess.Popen(
        [*COMMAND, "up", "--config", str(config)], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.PIPE, env={**os.environ},
    )  # fmt: skip
    assert process.stdout is not None
    bootstrap = process.stdout.readline().split()[4]
    with Brokers(bootstrap) as brokers:
        assert topics.create_topic(brokers, "t").partitions == 5
    process.terminate()
    process.communicate(timeout=20)
    assert (tmp_path / "d" / "t-0").is_dir()


@pytest.mark.parametrize("level", ["warning", "fatal"])
def test_an_unknown_name_in_a_configuration_file_is_reported(tmp_path: Path, level: str) -> None:
    """The unknown name is reported once, with a suggestion, also if the log level hides warnings."""
    config = tmp_path / "server.properties"
    config.write_text("num.partition=5\n")
    arguments = ["up", "--port", "0", "--data", str(tmp_path / "data"), "--config", str(config)]
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--log-level", level],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Ottla is ready")
    process.terminate()
    sentence = "Unknown configuration num.partition is ignored; did you mean num.partitions?"
    assert process.communicate(timeout=20)[1].count(sentence) == 1


def test_launcher_raises_an_error_if_the_start_fails(tmp_path: Path) -> None:
    """`BrokerProcess` raises an error with the broker's message."""
    (tmp_path / "meta.properties").write_text("garbage\n")
    with (
        pytest.raises(OttlaError, match=r"failed to start: ottla: .*meta\.properties"),
        BrokerProcess(tmp_path),
    ):
        pass


def test_broker_without_log_directory_stops(tmp_path: Path) -> None:
    """The exit code is 1, and one sentence names the directory, so that a supervisor can act."""
    with BrokerProcess(tmp_path / "data") as broker:
        shutil.rmtree(broker.data)
        broker.data.touch()
        with Brokers(broker.bootstrap) as brokers, contextlib.suppress(OttlaError, OSError):
            topics.create_topic(brokers, "t")
        # No signal: it ends by itself.
        code, errors = broker.stop(0)
    assert code == 1
    assert errors.splitlines()[-1].startswith(f"ottla: {tmp_path / 'data'}: ")
    assert "Traceback" not in errors


def test_log_lines_can_be_json(tmp_path: Path) -> None:
    """Each line is one JSON object, at the requested level."""
    process = subprocess.Popen(
        [*COMMAND, "up", "--port", "0", "--data", str(tmp_path), "--log-format", "json",
         "--log-level", "error", "--log-level", "ottla.controller=info"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    bootstrap = process.stdout.readline().split()[4]
    with Brokers(bootstrap) as brokers:
        topics.create_topic(brokers, "orders", partitions=2)
    process.terminate()
    lines = process.communicate(timeout=20)[1].splitlines()
    events = [json.loads(line) for line in lines if line != "Ottla has stopped."]
    assert {event["logger"].rpartition(".")[0] for event in events} == {"ottla.controller"}
    (created,) = [event for event in events if event["event"] == "topic created"]
    assert (created["name"], created["partitions"], created["level"]) == ("orders", 2, "INFO")


def test_unknown_log_level_is_an_error(tmp_path: Path) -> None:
    """The error lists the valid log levels."""
    assert "unknown log level 'loud'" in _refusal(tmp_path, "--log-level", "loud")


def test_metrics_are_served_on_the_requested_port(tmp_path: Path) -> None:
    """The second line has the address; metrics are on loopback only."""
    process = subprocess.Popen(
        [*COMMAND, "up", "--port", "0", "--data", str(tmp_path), "--metrics-port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    line = process.stdout.readline()
    match = re.fullmatch(r"Metrics are on (http://127\.0\.0\.1:\d+/metrics)\n", line)
    assert match is not None, line
    with urllib.request.urlopen(match.group(1)) as response:
        assert b"kafka_server_kafkaserver_brokerstate 3\n" in response.read()
    process.terminate()
    process.communicate(timeout=20)


def test_terminal_shows_status_line(tmp_path: Path) -> None:
    """A status line is below the ready line, and is removed when the broker stops."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "up", "--port", "0", "--data", str(tmp_path)], stdout=slave, stderr=slave
    )
    os.close(slave)
    output = ""
    while "partitions" not in output:
        output += os.read(master, 4096).decode()
    assert output.startswith("Ottla is ready on ")
    assert "0 messages/s · in 0 B/s · out 0 B/s · 0 partitions · 0 groups" in output
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):
        while True:
            output += os.read(master, 4096).decode()
    assert process.wait(timeout=20) == 0
    assert output.endswith("\r\x1b[2KOttla has stopped.\r\n")
    os.close(master)
