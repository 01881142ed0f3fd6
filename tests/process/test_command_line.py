"""The `ottla` command in shells and scripts: pipes, signals, start-up time."""

import resource
import shlex
import signal
import subprocess
import sys

import pytest

from ottla.testing.process import COMMAND, BrokerProcess, run_command

pytestmark = pytest.mark.slow


def _best_seconds(words: list[str]) -> float:
    """Return the least CPU time of the command, which other processes do not increase."""
    seconds = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(seconds)


@pytest.mark.parametrize("verb", [["topic", "list"], ["group", "list"], ["--help"]])
def test_command_starts_fast(broker: BrokerProcess, verb: list[str]) -> None:
    """The target is 150 ms on an idle machine; measured as CPU time, relative to importing click.

    A whole command, with its response, takes less than three times as long.
    """
    click = _best_seconds([sys.executable, "-c", "import click"])
    words = verb if verb == ["--help"] else [*verb, "-b", broker.bootstrap]
    assert _best_seconds([*COMMAND, *words]) < 3 * click


def test_records_pass_through_a_pipeline(broker: BrokerProcess) -> None:
    """Records are copied from one topic into another, with their keys."""
    at = ("-b", broker.bootstrap)
    run_command("produce", "a", "-K:", *at, stdin=b"k1:v1\nk2:v2\n")
    pipeline = (
        f"{shlex.join(COMMAND)} consume a -e -K: -b {broker.bootstrap} | "
        f"{shlex.join(COMMAND)} produce b -K: -b {broker.bootstrap}"
    )
    subprocess.run(pipeline, shell=True, check=True, timeout=30)
    assert run_command("consume", "b", "-e", "-K", "=", *at).stdout == b"k1=v1\nk2=v2\n"


def test_consume_ends_when_the_pipe_is_closed(broker: BrokerProcess) -> None:
    """`ottla consume … | head -2` ends without an error, although more records are available."""
    at = ("-b", broker.bootstrap)
    lines = b"".join(b"%d %s\n" % (number, b"x" * 1000) for number in range(3000))
    run_command("produce", "a", *at, stdin=lines)
    done = subprocess.run(
        f"{shlex.join(COMMAND)} consume a -b {broker.bootstrap} | head -c 2; "
        'echo " ${PIPESTATUS[0]}"',
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        timeout=30,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"0  0\n", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_consumer_commits_what_it_printed(broker: BrokerProcess, number: int) -> None:
    """After Ctrl-C the group resumes after the last printed line."""
    at = ("-b", broker.bootstrap)
    run_command("produce", "a", *at, stdin=b"1\n2\n")
    consumer = subprocess.Popen(
        [*COMMAND, "consume", "a", "--group", "g", *at],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert consumer.stdout is not None
    assert [consumer.stdout.readline(), consumer.stdout.readline()] == [b"1\n", b"2\n"]
    consumer.send_signal(number)
    assert consumer.communicate(timeout=20) == (b"", b"")
    assert consumer.returncode == 0
    run_command("produce", "a", *at, stdin=b"3\n")
    assert run_command("consume", "a", "--group", "g", "-e", *at).stdout == b"3\n"


def test_line_is_produced_immediately(broker: BrokerProcess) -> None:
    """A line is produced before the end of the input; Ctrl-C loses no line."""
    producer = subprocess.Popen(
        [*COMMAND, "produce", "a", "-b", broker.bootstrap],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert producer.stdin is not None
    producer.stdin.write(b"first\n")
    producer.stdin.flush()
    subprocess.run([*COMMAND, "topic", "create", "a", "--if-not-exists", "-b", broker.bootstrap],
                   capture_output=True, check=True)  # fmt: skip
    read = run_command("consume", "a", "-c", "1", "-b", broker.bootstrap)
    assert read.stdout == b"first\n"
    producer.send_signal(signal.SIGINT)
    producer.communicate(timeout=20)
    assert producer.returncode == 0


def test_consumer_survives_a_restart_of_the_broker(broker: BrokerProcess) -> None:
    """A consumer logs that it waits for the broker, and resumes from its position."""
    at = ("-b", broker.bootstrap)
    run_command("produce", "a", *at, stdin=b"before\n")
    consumer = subprocess.Popen(
        [*COMMAND, "consume", "a", "-c", "2", *at],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == b"before\n"
    broker.restart()
    run_command("produce", "a", *at, stdin=b"after\n")
    assert consumer.communicate(timeout=20)[0] == b"after\n"
